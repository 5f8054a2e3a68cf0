"""Targets: how code for each kind of machine is compiled, verified and timed."""
