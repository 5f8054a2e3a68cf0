// A shift of 64 bits by 32 places, which 32 bits have not.
// issue: https://github.com/llvm/llvm-project/issues/218191
// arguments: 96
// outputs: 0, 17179869184

func.func @main(%amount: i64) -> (i64, i64) {
  %mask = arith.constant 63 : i64
  %four = arith.constant 4 : i64
  %by = arith.andi %amount, %mask : i64
  %right = arith.shrsi %four, %by : i64
  %left = arith.shli %four, %by : i64
  return %right, %left : i64, i64
}
