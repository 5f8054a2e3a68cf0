"""The command of PTX files."""
