"""Lowers a script's CPU kernel to LLVM dialect for the JIT."""
