// Rounding up by the negation of the least integer.
// issue: https://github.com/llvm/llvm-project/issues/215696
// arguments: -9223372036854775808, 7
// outputs: -1317624576693539401, -1317624576693539401

func.func @main(%x: index, %y: index) -> (index, index) {
  %q = index.ceildivs %x, %y
  %r = affine.apply affine_map<(a) -> (a ceildiv 7)>(%x)
  return %q, %r : index, index
}
