"""Stored results measured again: whether they are still as fast, and still right."""
