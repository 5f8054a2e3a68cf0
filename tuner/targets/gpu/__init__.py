"""Targets of NVIDIA GPUs, real and simulated, and ptxas."""
