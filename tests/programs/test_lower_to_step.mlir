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
// ----- ARITHMETIC
func.func @main(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %y = arith.addf %x, %x : tensor<8x16xf32>
  %z = arith.mulf %y, %y : tensor<8x16xf32>
  %w = arith.addf %z, %y : tensor<8x16xf32>
  return %w : tensor<8x16xf32>
}
// ----- ADDITION
%TO = linalg.generic {indexing_maps = [#m, #m, #m], iterator_types = ["parallel", "parallel"]}
  ins(%FIRST, %one : tensor<8x16xf32>, tensor<8x16xf32>) outs(%empty : tensor<8x16xf32>) {
^bb0(%x: f32, %y: f32, %z: f32):
  %s = arith.addf %x, %y : f32
  linalg.yield %s : f32
} -> tensor<8x16xf32>
