// A step of multiply_add.mlir: adds to each f32 sum two products of bf16 by one instruction (AVX512_BF16).
llvm.func internal @step(%sums: !vector, %a: !vector) -> !vector attributes {always_inline} {
  %factors = llvm.bitcast %a : !vector to vector<32xbf16>
  %more = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%sums, %factors, %factors) : (!vector, vector<32xbf16>, vector<32xbf16>) -> !vector
  llvm.return %more : !vector
}
