// ----- ARITHMETIC

      %x = llvm.load %from : !llvm.ptr -> bf16
      %next = llvm.getelementptr %from[1] : (!llvm.ptr) -> !llvm.ptr, bf16
      %y = llvm.load %next : !llvm.ptr -> bf16
      %third = llvm.mlir.constant(3.337860e-01 : bf16) : bf16
      %product = llvm.fmul %x, %third : bf16
      %sum = llvm.intr.fma(%product, %y, %x) : (bf16, bf16, bf16) -> bf16
      %is_less = llvm.fcmp "olt" %sum, %y : bf16
      %least = llvm.select %is_less, %sum, %y : i1, bf16
      %wide = llvm.fpext %least : bf16 to f64
      %again = llvm.fptrunc %wide : f64 to bf16
      llvm.store %again, %to : bf16, !llvm.ptr
// ----- COLLECTED

      %x = llvm.load %from : !llvm.ptr -> bf16
      %y = llvm.call @second(%x, %x) : (bf16, bf16) -> bf16
      %none = llvm.mlir.poison : vector<2xbf16>
      %first = llvm.mlir.constant(0 : i64) : i64
      %other = llvm.mlir.constant(1 : i64) : i64
      %one = llvm.insertelement %x, %none[%first : i64] : vector<2xbf16>
      %two = llvm.insertelement %y, %one[%other : i64] : vector<2xbf16>
      %wide = llvm.fpext %two : vector<2xbf16> to vector<2xf32>
      llvm.store %wide, %to : vector<2xf32>, !llvm.ptr
// ----- SECOND

llvm.mlir.global private constant @table(dense<[1.0, -2.5]> : tensor<2xbf16>) : !llvm.array<2 x bf16>
llvm.func @second(%x: bf16, %y: bf16) -> bf16 {
  %table = llvm.mlir.addressof @table : !llvm.ptr
  %at = llvm.getelementptr %table[0, 1] : (!llvm.ptr) -> !llvm.ptr, !llvm.array<2 x bf16>
  %factor = llvm.load %at : !llvm.ptr -> bf16
  %product = llvm.fmul %factor, %y : bf16
  llvm.return %product : bf16
}
