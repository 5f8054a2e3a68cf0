// ----- LAUNCHES_IN_A_LOOP
func.func @main(%x: memref<8x4xf32>, %y: memref<8x4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  scf.parallel (%i) = (%c0) to (%c8) step (%c1) {
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
        threads(%tx, %ty, %tz) in (%sx = %c4, %sy = %c1, %sz = %c1) {
      %v = memref.load %x[%i, %tx] : memref<8x4xf32>
      memref.store %v, %y[%i, %tx] : memref<8x4xf32>
      gpu.terminator
    }
    scf.reduce
  }
  return
}
// ----- TWO_MODULES
module attributes {gpu.container_module} {
  gpu.module @m {
    func.func @more(%a: f32) -> f32 { %b = arith.addf %a, %a : f32 return %b : f32 }
    gpu.func @k(%x: memref<64xf32>, %y: memref<64xf32>) kernel {
      %i = gpu.thread_id x
      %v = memref.load %x[%i] : memref<64xf32>
      %r = func.call @more(%v) : (f32) -> f32
      memref.store %r, %y[%i] : memref<64xf32>
      gpu.return
    }
  }
  gpu.module @n {
    func.func @more(%a: f32) -> f32 { %b = arith.mulf %a, %a : f32 return %b : f32 }
    gpu.func @k(%y: memref<64xf32>) kernel {
      %i = gpu.thread_id x
      %v = memref.load %y[%i] : memref<64xf32>
      %r = func.call @more(%v) : (f32) -> f32
      memref.store %r, %y[%i] : memref<64xf32>
      gpu.return
    }
  }
  func.func @main(%x: memref<64xf32>, %y: memref<64xf32>) {
    %c1 = arith.constant 1 : index %c64 = arith.constant 64 : index
    gpu.launch_func @m::@k blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1)
      args(%x : memref<64xf32>, %y : memref<64xf32>)
    gpu.launch_func @n::@k blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1) args(%y : memref<64xf32>)
    return
  }
}
