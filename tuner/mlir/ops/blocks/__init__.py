"""What the ops share that replace a ``linalg.matmul`` of buffers by packing and a register kernel."""
