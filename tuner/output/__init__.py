"""Values to lines, JSON and HTML. Nothing here prints but ``progress``."""
