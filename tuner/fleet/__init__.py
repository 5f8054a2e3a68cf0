"""Runs whose candidates are compiled and measured by processes on other machines, over a shared database."""

# What other packages may import; the rest is inside.
__all__ = ["runner", "server"]
