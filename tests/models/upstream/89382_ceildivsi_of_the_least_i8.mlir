// Rounding up and down of the least number of a narrow type, of arguments and of constants.
// issue: https://github.com/llvm/llvm-project/issues/89382
// arguments: -128, 7
// outputs: -18, -19, -18, -19

func.func @main(%x: i8, %y: i8) -> (i8, i8, i8, i8) {
  %least = arith.constant -128 : i8
  %seven = arith.constant 7 : i8
  %a = arith.ceildivsi %x, %y : i8
  %b = arith.floordivsi %x, %y : i8
  %c = arith.ceildivsi %least, %seven : i8
  %d = arith.floordivsi %least, %seven : i8
  return %a, %b, %c, %d : i8, i8, i8, i8
}
