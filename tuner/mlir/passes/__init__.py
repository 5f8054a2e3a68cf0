"""Passes that upstream lacks, in Python: one per file. Each changes a module in place."""
