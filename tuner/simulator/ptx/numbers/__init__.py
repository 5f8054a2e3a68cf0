"""Rounding and fused multiply-add, bit for bit as PTX defines them."""
