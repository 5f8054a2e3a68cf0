"""Order and asynchrony of a host function: tokens, streams, events, GPUX."""
