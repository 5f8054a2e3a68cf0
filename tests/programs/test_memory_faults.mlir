// ----- shared_and_registered_memory_are_in_reach_of_both
%d = gpu.alloc host_shared () : memref<16xf32>
memref.copy %a, %d : memref<16xf32> to memref<16xf32>
%u = memref.cast %b : memref<16xf32> to memref<*xf32>
gpu.host_register %u : memref<*xf32>
gpu.launch_func @m::@add blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)
  args(%d : memref<16xf32>, %b : memref<16xf32>, %b : memref<16xf32>)
gpu.host_unregister %u : memref<*xf32>
gpu.dealloc %d : memref<16xf32>
