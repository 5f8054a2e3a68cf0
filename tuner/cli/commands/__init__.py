"""The commands of the command line, one file per command or group of commands."""
