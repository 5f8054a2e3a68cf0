"""Small PyTorch modules drawn by a seed, as source text: common code, rare numbers and sizes."""
