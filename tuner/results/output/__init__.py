"""Formats values as lines, tables, JSON and HTML. Only ``progress`` prints."""
