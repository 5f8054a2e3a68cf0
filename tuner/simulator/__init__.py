"""A simulated NVIDIA GPU: its PTX, and the device that programs run on."""
