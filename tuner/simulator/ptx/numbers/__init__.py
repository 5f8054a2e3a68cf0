"""Rounding and fused arithmetic, bit for bit as PTX defines them."""
