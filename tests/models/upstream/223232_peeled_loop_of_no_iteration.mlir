// A loop from 5 to 3 has no iteration; peeled, it has one.
// issue: https://github.com/llvm/llvm-project/issues/223232
// arguments: [7, 7, 7, 7, 7, 7, 7, 7], 5, 3
// outputs: [7, 7, 7, 7, 7, 7, 7, 7]
// defect: transform.loop.peel makes a partial iteration of a loop whose bounds are not constants, also where it has none
module {
  func.func @main(%m: memref<8xi32>, %from: index, %to: index) {
    %step = arith.constant 4 : index
    %one = arith.constant 1 : i32
    scf.for %i = %from to %to step %step {
      memref.store %one, %m[%i] : memref<8xi32>
    }
    return
  }
  module attributes {transform.with_named_sequence} {
    transform.named_sequence @__transform_main(%root: !transform.any_op) {
      %loop = transform.structured.match ops{["scf.for"]} in %root : (!transform.any_op) -> !transform.op<"scf.for">
      %main, %rest = transform.loop.peel %loop {peel_front = true}
        : (!transform.op<"scf.for">) -> (!transform.any_op, !transform.any_op)
      transform.yield
    }
  }
}
