// A step of multiply_add.mlir: adds to each i32 sum two products of bytes that were widened to 16 bits. One factor is
// the register of sums: a product of loop-invariant factors would be hoisted out of the loop.
llvm.func internal @step(%sums: !vector, %a: !vector) -> !vector attributes {always_inline} {
  %others = llvm.bitcast %sums : !vector to !factors
  %factors = llvm.bitcast %a : !vector to !factors
  %products = llvm.call_intrinsic "INTRINSIC"(%others, %factors) : (!factors, !factors) -> !vector
  %more = llvm.add %sums, %products : !vector
  llvm.return %more : !vector
}
