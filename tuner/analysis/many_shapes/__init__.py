"""Pure functions over one set of configurations tried on many problems: order, schedule, matrix of times."""
