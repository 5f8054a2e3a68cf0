"""Runs whose candidates are compiled and judged by processes elsewhere, which meet in one database."""
