"""Makes the device work of a host function asynchronous: tokens, streams, events, GPUX."""
