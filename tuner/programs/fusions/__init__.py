"""Programs of static sizes as groups of operations: each group is compiled by a schedule of its own."""
