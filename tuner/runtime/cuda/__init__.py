"""The CUDA driver: its calls as one table, two ways to make them, and the device on top.

Importing this needs neither a driver nor a GPU.
"""

from tuner.runtime.cuda.cuda_device import CudaDevice
from tuner.runtime.cuda.facts import CudaFacts
from tuner.runtime.cuda.opening import open_device, open_driver

__all__ = ["CudaDevice", "CudaFacts", "open_device", "open_driver"]
