"""PTX text -> syntax tree, basic blocks, and the layout of memory; types, rounding, lanes."""

# What other packages may import; the rest is inside.
__all__ = ["defects", "geometry", "parser", "syntax_tree"]
