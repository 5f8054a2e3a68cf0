// ----- SUMS
func.func @main(%a: memref<4xf32>, %n: index) -> index {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%x = %c0) -> index {
    %y = arith.addi %x, %i : index
    scf.yield %y : index
  }
  return %r : index
}
// ----- COMPLEX
func.func @main(%x: f32, %y: f32) -> f32 {
  %z = complex.create %x, %y : complex<f32>
  %r = complex.im %z : complex<f32>
  return %r : f32
}
// ----- EXTREMES
func.func @main(%x: tensor<8x16xf32>) -> tensor<8xf32> {
  %low = arith.constant 0xFF800000 : f32
  %empty = tensor.empty() : tensor<8xf32>
  %start = linalg.fill ins(%low : f32) outs(%empty : tensor<8xf32>) -> tensor<8xf32>
  %r = linalg.reduce { arith.maximumf } ins(%x : tensor<8x16xf32>) outs(%start : tensor<8xf32>) dimensions = [1]
  return %r : tensor<8xf32>
}
// ----- DIVISION
func.func @main(%x: i32, %y: i32) -> i32 {
  %c3 = arith.constant 3 : i32
  %c0 = arith.constant 0 : i32
  %q = arith.divsi %x, %y : i32
  %r = arith.muli %q, %c0 : i32
  return %c3 : i32
}
