"""Tuned kernels of several problems as a C library: header, object file, dispatch, fallback."""
