"""Runs one tuning run: settings, search, final re-measurement, selected result."""
