"""Learning a projection from labelled rows: validation, coordinates, starting directions, solvers and search."""
