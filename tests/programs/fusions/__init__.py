"""Tests of programs as groups of operations."""
