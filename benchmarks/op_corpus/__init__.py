"""PyTorch's own samples of its operators, and modules: drawn, compiled, and compared with eager."""
