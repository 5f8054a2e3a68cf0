"""The CPU target and its baselines: OpenBLAS, and oneDNN for bf16."""
