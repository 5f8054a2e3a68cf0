"""PyTorch models that ``benchmarks.models`` times."""
