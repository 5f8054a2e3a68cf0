"""Compiled host programs, called from Python on a device or on the host."""
