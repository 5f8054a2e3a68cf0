"""A fleet of machines: its job queue simulated with up to 1,000 nodes, and measured on a local server."""
