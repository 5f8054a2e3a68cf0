"""One table of operators, their types and exact results, for both simulated machines."""
