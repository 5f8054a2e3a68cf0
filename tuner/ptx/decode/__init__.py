"""Instructions -> Python functions over a chunk: one family of instructions per file."""
