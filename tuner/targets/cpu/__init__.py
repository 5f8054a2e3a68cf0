"""The CPU target and its vendor libraries: OpenBLAS, and oneDNN for bf16."""
