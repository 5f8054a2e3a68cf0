"""What tests, and benchmarks beside them, need to make kernels, programs, devices and faults."""
