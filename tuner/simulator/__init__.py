"""A simulated NVIDIA GPU: a PTX interpreter, and the device (streams, events, memory) around it."""

# What other packages may import; the rest is inside.
__all__ = ["device", "launch", "memory", "ptx"]
