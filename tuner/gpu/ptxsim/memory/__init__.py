"""State spaces, asynchronous copies, data races by vector clocks, bank conflicts."""
