"""Compiled functions, thread teams, guarded arrays, load and roofline of this machine's processor."""
