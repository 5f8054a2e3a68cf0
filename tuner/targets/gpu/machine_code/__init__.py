"""Machine code of NVIDIA GPUs read, and what it keeps a multiprocessor busy with, by counting."""
