"""Strategies: templates and plain schedules, which of them a run tries, the header of an exported script."""
