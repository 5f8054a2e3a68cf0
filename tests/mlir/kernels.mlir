// ----- KERNEL
module attributes {gpu.container_module} {
  func.func @host(%g: memref<256xf32>) {
    %c1 = arith.constant 1 : index
    %c256 = arith.constant 256 : index
    gpu.launch_func @m::@k blocks in (%c1, %c1, %c1) threads in (%c256, %c1, %c1) LAUNCH
      args(%g : memref<256xf32>)
    return
  }
  gpu.module @m {
    gpu.func @k(%g: memref<256xf32>) kernel {
      %i = gpu.thread_id x
      %v = memref.load %g[%i] : memref<256xf32>
      %a = memref.alloc() : memref<256xf32, #gpu.address_space<workgroup>>
      %b = memref.alloc() : memref<256xf32, #gpu.address_space<workgroup>>
      BODY
      gpu.return
    }
  }
}
