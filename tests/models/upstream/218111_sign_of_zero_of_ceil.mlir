// Rounding up a number between -1 and 0 gives -0, whose reciprocal is negative.
// issue: https://github.com/llvm/llvm-project/issues/218111
// arguments: -0.25, -0.25
// outputs: -inf, -inf, -inf

func.func @main(%x: f32, %y: f64) -> (f32, f64, f32) {
  %one = arith.constant 1.0 : f32
  %wide = arith.constant 1.0 : f64
  %minus = arith.constant -0.0 : f32
  %a = math.ceil %x : f32
  %b = math.ceil %y : f64
  %c = math.ceil %minus : f32
  %ra = arith.divf %one, %a : f32
  %rb = arith.divf %wide, %b : f64
  %rc = arith.divf %one, %c : f32
  return %ra, %rb, %rc : f32, f64, f32
}
