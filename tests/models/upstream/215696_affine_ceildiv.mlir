// Rounding up in conditions, bounds and minima of affine.
// issue: https://github.com/llvm/llvm-project/issues/215696
// arguments: -9223372036854775808
// outputs: 0, -1317624576693539401, -6588122883467696995, -1317624576693539402, 6

func.func @main(%a: index) -> (i32, index, index, index, index) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0 : index
  %is_large = affine.if affine_set<(d0) : (d0 ceildiv 4 + 3 >= 0)>(%a) -> i32 {
    affine.yield %c1 : i32
  } else {
    affine.yield %c0 : i32
  }
  %least = affine.min affine_map<(d0) -> (d0 ceildiv 7, 8)>(%a)
  %sum = affine.for %i = affine_map<(d0) -> (d0 ceildiv 7)>(%a) to affine_map<(d0) -> (d0 ceildiv 7 + 5)>(%a)
      iter_args(%x = %zero) -> index {
    %y = arith.addi %x, %i : index
    affine.yield %y : index
  }
  %down = affine.apply affine_map<(d0) -> (d0 floordiv 7)>(%a)
  %rest = affine.apply affine_map<(d0) -> (d0 mod 7)>(%a)
  return %is_large, %least, %sum, %down, %rest : i32, index, index, index, index
}
