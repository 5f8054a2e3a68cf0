"""Dialects of frameworks, by which their models come in."""
