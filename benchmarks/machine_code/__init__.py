"""Statistics of the machine code of the GPU strategies: the instructions of their main loops."""
