"""PyTorch's own samples of its operators: drawn, compiled, and compared with eager."""
