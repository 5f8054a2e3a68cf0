"""Targets: how code for a kind of machine is compiled, verified and timed, a file or folder each."""
