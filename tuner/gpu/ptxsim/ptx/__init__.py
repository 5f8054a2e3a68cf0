"""PTX text -> syntax tree, basic blocks, and the layout of memory; types, rounding, lanes."""
