"""A fleet of machines: its queue simulated with up to 1,000 nodes, and measured on a server here."""
