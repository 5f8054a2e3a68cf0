"""Tests of programs as fusions."""
