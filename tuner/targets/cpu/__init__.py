"""The CPU target and its baselines: OpenBLAS, MKL, BLIS and oneDNN."""
