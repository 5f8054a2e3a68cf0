"""Tuned sizes as a tuning spec of IREE, re-timed in IREE's own runtime."""
