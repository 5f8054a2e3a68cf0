"""A script's CPU kernel down to the LLVM dialect, ready for the JIT."""
