"""Random inputs of the fuzz programs and their checks, shared with tests."""
