// ----- HOST_READS
func.func @main(%a: memref<4xf32>, %n: index) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%old = %zero) -> f32 {
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %c4, %sy = %c1, %sz = %c1) {
      %x = memref.load %a[%tx] : memref<4xf32>
      %y = arith.addf %x, %x : f32
      memref.store %y, %a[%tx] : memref<4xf32>
      gpu.terminator
    }
    %v = memref.load %a[%c0] : memref<4xf32>
    %new = arith.addf %old, %v : f32
    scf.yield %new : f32
  }
  return %sum : f32
}
