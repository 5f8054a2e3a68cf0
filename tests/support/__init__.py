"""What tests and benchmarks need to make kernels, programs, devices and faults."""
