// Two equal scf.ifs, in a loop in a loop: CSE makes one of them, folding makes %w2 its result.
// issue: https://github.com/llvm/llvm-project/issues/219456
// arguments: 1
// outputs: 80, 10

func.func @main(%n: index) -> (index, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c5 = arith.constant 5 : index
  %c40 = arith.constant 40 : index
  %sums:2 = scf.for %k = %c0 to %c2 step %c1 iter_args(%x = %c0, %y = %c0) -> (index, index) {
    %r:3 = scf.while (%s = %c0) : (index) -> (index, index, index) {
      %go = arith.cmpi slt, %s, %n : index
      %again = arith.cmpi slt, %s, %n : index
      %v = scf.if %go -> index {
        %next = arith.addi %s, %c5 : index
        scf.yield %next : index
      } else {
        scf.yield %c40 : index
      }
      %w = scf.if %again -> index {
        %next = arith.addi %s, %c5 : index
        scf.yield %next : index
      } else {
        scf.yield %c40 : index
      }
      %w2 = arith.addi %w, %c0 : index
      scf.condition(%go) %v, %w2, %s : index, index, index
    } do {
    ^bb0(%f: index, %g: index, %o: index):
      scf.yield %g : index
    }
    %x2 = arith.addi %x, %r#1 : index
    %y2 = arith.addi %y, %r#2 : index
    scf.yield %x2, %y2 : index, index
  }
  return %sums#0, %sums#1 : index, index
}
