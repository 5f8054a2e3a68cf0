"""Transform ops for NVIDIA GPUs: blocks, shared memory, copies, fragments, products, epilogues, stores."""
