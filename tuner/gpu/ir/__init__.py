"""Kernels' IR: launches, warps, padded views, epilogues and sums of scaled parts."""
