"""Rows to one projection: validation, coordinates, starts, solvers, search."""
