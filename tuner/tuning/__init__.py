"""Composes one run of the tuner out of its parts."""
