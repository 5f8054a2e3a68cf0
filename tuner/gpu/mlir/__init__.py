"""Lowers a script's GPU kernels to PTX: passes that change a module in place, and what they need to know."""
