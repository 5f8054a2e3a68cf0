"""A simulated NVIDIA GPU: a PTX interpreter, the device (streams, events, memory) around it, and a target."""
