// A step of multiply_add.mlir: adds to each i32 sum a product of bytes that were widened to 16 bits, as AArch64's smlal
// does. One factor is part of the register of sums: a product of loop-invariant factors would be hoisted out of the loop.
llvm.func internal @step(%sums: !vector, %a: !vector) -> !vector attributes {always_inline} {
  %all_others = llvm.bitcast %sums : !vector to !words
  %all_factors = llvm.bitcast %a : !vector to !words
  %others = llvm.shufflevector %all_others, %all_others FIRST : !words
  %factors = llvm.shufflevector %all_factors, %all_factors FIRST : !words
  %wide_others = llvm.sext %others : !factors to !vector
  %wide_factors = llvm.sext %factors : !factors to !vector
  %products = llvm.mul %wide_others, %wide_factors : !vector
  %more = llvm.add %sums, %products : !vector
  llvm.return %more : !vector
}
