"""Formats values as lines, JSON and HTML. Only ``progress`` prints."""
