// An inner loop that begins with the outer loop's value and reads that value in each iteration.
// issue: https://github.com/llvm/llvm-project/issues/216289
// arguments: 1
// outputs: 625

func.func @main(%init: i64) -> i64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%a = %init) -> (i64) {
    %s = scf.for %j = %c0 to %c4 step %c1 iter_args(%b = %a) -> (i64) {
      %t = arith.addi %b, %a : i64
      scf.yield %t : i64
    }
    scf.yield %s : i64
  }
  return %r : i64
}
