"""Transform ops for NVIDIA GPUs: shared memory, copies, stores, fragments."""
