"""The CUDA driver, called through cuda-bindings or ctypes, a device on top of the driver; NVML and cuBLAS.

Importing these modules needs neither a driver nor a GPU.
"""
