"""The CUDA driver, called through cuda-bindings or ctypes, and the device on top of it; NVML and cuBLAS.

Importing these files needs neither a driver nor a GPU.
"""
