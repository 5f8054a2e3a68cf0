"""Tests of PyTorch models as programs."""
