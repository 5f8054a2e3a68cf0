"""Instructions -> Python functions (steps) over resident thread blocks; one instruction group per file."""
