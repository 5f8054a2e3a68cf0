// An scf.if's result that scf.condition passes twice: one of the two becomes the value of the else branch.
// issue: https://github.com/llvm/llvm-project/issues/219456
// outputs: 5

func.func @main() -> index {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %c40 = arith.constant 40 : index
  %r:3 = scf.while (%s = %c0) : (index) -> (index, index, index) {
    %go = arith.cmpi slt, %s, %c1 : index
    %v = scf.if %go -> index {
      %n = arith.addi %s, %c5 : index
      scf.yield %n : index
    } else {
      scf.yield %c40 : index
    }
    scf.condition(%go) %v, %v, %s : index, index, index
  } do {
  ^bb0(%f: index, %g: index, %o: index):
    scf.yield %g : index
  }
  return %r#2 : index
}
