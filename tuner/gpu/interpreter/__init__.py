"""Interprets GPU kernels on the host, all threads of some blocks in lockstep: a second opinion on PTX."""
