// Branches on the carry of a sum of booleans, whose range is one number.
// issue: https://github.com/llvm/llvm-project/issues/137281
// arguments: True, False
// outputs: 52, True

func.func @main(%x: i1, %y: i1) -> (i64, i1) {
  %sum, %carry = arith.addui_extended %x, %y : i1, i1
  cf.cond_br %carry, ^one, ^two
^one:
  %a = arith.constant -7668919674129928000 : i64
  cf.br ^end(%a : i64)
^two:
  %b = arith.constant 52 : i64
  cf.br ^end(%b : i64)
^end(%r: i64):
  return %r, %sum : i64, i1
}
