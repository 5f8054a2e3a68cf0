// A step of multiply_add.mlir: a multiply-add in each lane.
llvm.func internal @step(%sums: !vector, %a: !vector) -> !vector attributes {always_inline} {
  %more = llvm.intr.fma(%sums, %a, %a) : (!vector, !vector, !vector) -> !vector
  llvm.return %more : !vector
}
