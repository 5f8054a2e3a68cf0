"""Bundles: files that carry compiled candidates to a machine with a GPU, and their results back."""
