// ----- SHARED
%half = arith.constant 0.5 : f32
%c = memref.alloc() : memref<64xf32>
%h = gpu.alloc host_shared () : memref<64xf32>
memref.store %half, %h[%c1] : memref<64xf32>
memref.store %half, %c[%c1] : memref<64xf32>
%t0 = gpu.dealloc async [%t_s0] %h : memref<64xf32>
return %c : memref<64xf32>
// ----- WRITTEN
%da, %t0 = gpu.alloc async [%t_s0] () : memref<64xf32>
%t1 = gpu.memcpy async [%t_s0] %da, %a : memref<64xf32>, memref<64xf32>
%t2 = gpu.launch_func async [%t_s0] @kernels::@twice blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1)
  args(%da : memref<64xf32>, %da : memref<64xf32>)
%t3 = gpu.memcpy async [%t_s0] %a, %da : memref<64xf32>, memref<64xf32>
%t4 = gpu.dealloc async [%t_s0] %da : memref<64xf32>
return
