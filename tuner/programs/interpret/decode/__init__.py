"""Decoders: convert operations to steps over all lanes, one family of operations per file."""
