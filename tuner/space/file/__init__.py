"""The search-space file: reading, validation, and search spaces for a problem."""
