"""Elementary functions as arithmetic on scalars and vectors, for every target."""
