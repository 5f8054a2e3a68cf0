// Zero to the power of zero, and one to the power of NaN, are 1.
// issue: https://github.com/llvm/llvm-project/issues/118945
// arguments: 0.0, 1.0, nan
// outputs: 1.0, 1.0

func.func @main(%x: f32, %one: f32, %nan: f32) -> (f32, f32) {
  %a = math.powf %x, %x : f32
  %b = math.powf %one, %nan : f32
  return %a, %b : f32, f32
}
