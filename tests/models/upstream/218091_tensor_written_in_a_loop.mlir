// A tensor that each iteration makes and changes: the change must not reach the next iteration.
// issue: https://github.com/llvm/llvm-project/issues/218091
// arguments: 3, 7
// outputs: 120

func.func @main(%a: i64, %b: i64) -> i64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0 : i64
  %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%sum = %zero) -> (i64) {
    %t = tensor.from_elements %a, %b, %a, %b : tensor<4xi64>
    %old = tensor.extract %t[%c2] : tensor<4xi64>
    %new = arith.addi %old, %b : i64
    %changed = tensor.insert %new into %t[%c2] : tensor<4xi64>
    %x = tensor.extract %changed[%c2] : tensor<4xi64>
    %y = tensor.extract %t[%c2] : tensor<4xi64>
    %both = arith.muli %x, %y : i64
    %next = arith.addi %sum, %both : i64
    scf.yield %next : i64
  }
  return %r : i64
}
