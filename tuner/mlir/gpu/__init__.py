"""Passes from a script's GPU kernels down to PTX: one per file. Each changes a module in place."""
