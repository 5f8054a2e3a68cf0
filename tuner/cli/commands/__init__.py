"""The commands: flags in, lines out, one file per command."""
