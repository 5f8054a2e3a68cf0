// ----- LLVM
llvm.func @f(%arg0: !llvm.ptr) {
    %0 = llvm.mlir.constant(4 : i64) : i64
    %1 = llvm.load %arg0 : !llvm.ptr -> f32
    %2 = llvm.intr.fmuladd(%1, %1, %1) : (f32, f32, f32) -> f32
    llvm.store %2, %arg0 : f32, !llvm.ptr
    llvm.return
}
