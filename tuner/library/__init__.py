"""Tuned schedules of several problems as files that other programs load."""
