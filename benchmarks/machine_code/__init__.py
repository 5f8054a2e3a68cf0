"""The machine code of the GPU strategies, counted: what their main loops are made of."""
