"""What a fit leaves: densities, their crossings, the decision, names."""
