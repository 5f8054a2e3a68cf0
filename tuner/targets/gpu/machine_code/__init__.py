"""Reads machine code of NVIDIA GPUs and counts the cycles that it keeps a multiprocessor's parts busy."""
