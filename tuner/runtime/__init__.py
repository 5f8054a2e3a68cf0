"""Runs and times compiled code on this machine's processor and GPU."""
