"""The search space file: text the user writes, read into search spaces."""
