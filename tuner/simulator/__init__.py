"""A simulated NVIDIA GPU: a PTX interpreter, and the device (streams, events, memory) around it."""
