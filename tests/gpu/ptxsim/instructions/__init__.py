"""One instruction at a time, over many values, against Python's own arithmetic."""
