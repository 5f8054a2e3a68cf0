"""Instructions of PTX as Python functions over resident thread blocks, one family per module."""
