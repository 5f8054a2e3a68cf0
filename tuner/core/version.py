"""The version of this package, for what must not import the API."""

__version__ = "0.1.0"
