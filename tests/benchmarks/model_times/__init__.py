"""Tests of how models are timed."""
