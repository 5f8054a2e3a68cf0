"""The commands of bundles."""
