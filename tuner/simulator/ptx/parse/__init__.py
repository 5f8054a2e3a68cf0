"""PTX text to a syntax tree, basic blocks and the layout of memory."""
