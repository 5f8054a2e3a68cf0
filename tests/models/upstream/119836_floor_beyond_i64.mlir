// Rounding of numbers that no i64 holds, and of infinities.
// issue: https://github.com/llvm/llvm-project/issues/119836
// arguments: 36893488147419103232.0, -inf
// outputs: 36893488147419103232.0, 36893488147419103232.0, -inf

func.func @main(%x: f32, %y: f32) -> (f32, f32, f32) {
  %a = math.floor %x : f32
  %b = math.ceil %x : f32
  %c = math.trunc %y : f32
  return %a, %b, %c : f32, f32, f32
}
