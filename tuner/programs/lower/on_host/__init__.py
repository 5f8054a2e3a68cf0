"""Lowering of a program for a machine without a GPU: launches become loops, streams are dropped."""
