"""A plain `.mlir` schedule: its knobs and constraints, read from transform.tune and transform.smt ops."""
