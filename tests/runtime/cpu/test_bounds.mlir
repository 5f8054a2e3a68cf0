// ----- BOUNDED
module {
  llvm.func @bounded(%x: !llvm.ptr, %y: !llvm.ptr) attributes {llvm.emit_c_interface} {
    %limits = llvm.mlir.constant(dense<LIMIT> : vector<2x8xf32>) : !llvm.array<2 x vector<8xf32>>
    %limit = llvm.extractvalue %limits[1] : !llvm.array<2 x vector<8xf32>>
    %vector = llvm.load %x {alignment = 4 : i64} : !llvm.ptr -> vector<8xf32>
    %bounded = llvm.intr.KIND(OPERANDS) : (vector<8xf32>, vector<8xf32>) -> vector<8xf32>
    llvm.store %bounded, %y {alignment = 4 : i64} : vector<8xf32>, !llvm.ptr
    llvm.return
  }
}
// ----- RELU
module {
  llvm.func @relu(%x: vector<8xf32>) -> vector<8xf32> {
    %c = llvm.mlir.constant(dense<0.0> : vector<8xf32>) : vector<8xf32>
    %y = llvm.intr.maximum(%x, %c) : (vector<8xf32>, vector<8xf32>) -> vector<8xf32>
    llvm.return %y : vector<8xf32>
  }
}
