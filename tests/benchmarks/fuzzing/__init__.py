"""Tests of what the fuzz programs draw."""
