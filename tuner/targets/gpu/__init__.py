"""Targets for NVIDIA GPUs, real and simulated, and the assembler ptxas."""
