"""Instructions -> Python functions over resident thread blocks; one group of instructions per file."""
