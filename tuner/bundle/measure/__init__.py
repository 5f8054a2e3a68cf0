"""Times candidates of a bundle with Python, numpy and a CUDA driver; imports no compiler or database."""
