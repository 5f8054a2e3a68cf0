"""A simulated NVIDIA GPU: a PTX interpreter, the device (streams, events, memory) around it, and a target."""

# What other packages may import; the rest is inside.
__all__ = ["device", "launch", "memory", "ptx"]
