"""Transform ops of convolutions on CPUs: their tiles, kernels in registers, and the order of weights."""
