"""Times candidates of a bundle with Python, numpy and a CUDA driver: no compiler, no database is imported."""
