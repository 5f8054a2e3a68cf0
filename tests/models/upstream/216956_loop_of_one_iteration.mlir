// A loop of one iteration whose carried value is never read: its result is what it yields.
// issue: https://github.com/llvm/llvm-project/issues/216956
// arguments: 5, 9
// outputs: 9, 81

func.func @main(%x: i32, %n: i32) -> (i32, i32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %r = scf.for %i = %c0 to %c1 step %c1 iter_args(%carried = %x) -> (i32) {
    %v = arith.index_cast %i : index to i32
    %w = arith.addi %v, %n : i32
    scf.yield %w : i32
  }
  %s = scf.for %i = %c0 to %c3 step %c3 iter_args(%carried = %x) -> (i32) {
    %w = arith.muli %r, %n : i32
    scf.yield %w : i32
  }
  return %r, %s : i32, i32
}
