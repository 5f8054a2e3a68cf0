"""Compiled host programs as Python functions, on a device or on the host."""
