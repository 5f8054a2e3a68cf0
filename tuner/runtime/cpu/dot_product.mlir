// A step of multiply_add.mlir: adds to each sum several products of bytes or of bf16 by one instruction.
llvm.func internal @step(%sums: !vector, %a: !vector) -> !vector attributes {always_inline} {
  %factors = llvm.bitcast %a : !vector to !factors
  %more = llvm.call_intrinsic "INTRINSIC"(%sums, %factors, %factors) : (!vector, !factors, !factors) -> !vector
  llvm.return %more : !vector
}
