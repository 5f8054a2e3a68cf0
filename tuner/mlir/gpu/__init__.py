"""Passes that lower a script's GPU kernels to PTX, one per file; each changes a module in place."""
