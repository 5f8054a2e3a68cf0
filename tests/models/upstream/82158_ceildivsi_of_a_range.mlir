// Rounding up a quotient whose operands' ranges an analysis knows.
// issue: https://github.com/llvm/llvm-project/issues/82158
// arguments: 29326
// outputs: 2

func.func @main(%x: i32) -> i32 {
  %two = arith.constant 2 : i32
  %one = arith.constant 1 : i32
  %eight = arith.constant 8 : i32
  %shifted = arith.shrsi %x, %two : i32
  %ones = math.ctpop %shifted : i32
  %doubled = arith.shli %ones, %one : i32
  %r = arith.ceildivsi %doubled, %eight : i32
  return %r : i32
}
