"""Alias analysis and side effects: which buffers an operation reads and writes."""
