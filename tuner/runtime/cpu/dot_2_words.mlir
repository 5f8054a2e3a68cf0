// A step of multiply_add_i8.mlir: each i32 sum takes two products of bytes that were widened to 16 bits. One factor are
// the sums: products of what no iteration changes would be computed once, before the loop.
llvm.func internal @step(%sums: !vector, %a: !vector) -> !vector attributes {always_inline} {
  %others = llvm.bitcast %sums : !vector to !factors
  %factors = llvm.bitcast %a : !vector to !factors
  %products = llvm.call_intrinsic "INTRINSIC"(%others, %factors) : (!factors, !factors) -> !vector
  %more = llvm.add %sums, %products : !vector
  llvm.return %more : !vector
}
