"""Programs of static sizes as fusions: each fusion is compiled by a schedule of its own."""
