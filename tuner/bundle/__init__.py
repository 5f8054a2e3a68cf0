"""Files that carry candidates to a machine with a GPU, and their results back. Needs nothing but Python."""
