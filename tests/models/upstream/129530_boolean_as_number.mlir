// True as a number is 1 where it is extended without sign, and -1 with one.
// issue: https://github.com/llvm/llvm-project/issues/129530
// arguments: 3
// outputs: 1, -1, 1.0

func.func @main(%x: i64) -> (i16, i16, f32) {
  %same = arith.cmpi eq, %x, %x : i64
  %a = arith.extui %same : i1 to i16
  %b = arith.extsi %same : i1 to i16
  %c = arith.uitofp %same : i1 to f32
  return %a, %b, %c : i16, i16, f32
}
