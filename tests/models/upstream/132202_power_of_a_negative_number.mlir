// Whole powers of a negative number, whose logarithm is NaN.
// issue: https://github.com/llvm/llvm-project/issues/132202
// arguments: -2.0, 3.0, 4.0
// outputs: -8.0, 16.0

func.func @main(%x: f32, %y: f32, %z: f32) -> (f32, f32) {
  %a = math.powf %x, %y : f32
  %b = math.powf %x, %z : f32
  return %a, %b : f32, f32
}
