// Rows of one element, reinterpreted.
// issue: https://github.com/llvm/llvm-project/issues/115294
// arguments: 2.0
// outputs: -2147483648, 0.0

func.func @main(%x: f32) -> (i32, f32) {
  %v = vector.broadcast %x : f32 to vector<3x1xf32>
  %zero = arith.constant dense<-0.0> : vector<3x1xf32>
  %s = arith.mulf %v, %zero : vector<3x1xf32>
  %bits = vector.bitcast %s : vector<3x1xf32> to vector<3x1xi32>
  %i = vector.extract %bits[2, 0] : i32 from vector<3x1xi32>
  %f = vector.extract %s[1, 0] : f32 from vector<3x1xf32>
  return %i, %f : i32, f32
}
