"""Where rows are, and what a pass over them returns."""
