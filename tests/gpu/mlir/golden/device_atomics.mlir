module {
  llvm.func @k(%arg0: !llvm.ptr<1>, %arg1: f32) -> f32 {
    %0 = llvm.atomicrmw fadd %arg0, %arg1 syncscope("device") monotonic : !llvm.ptr<1>, f32
    %1 = llvm.atomicrmw fadd %arg0, %arg1 acq_rel : !llvm.ptr<1>, f32
    %2 = llvm.atomicrmw xchg %arg0, %arg1 syncscope("device") release : !llvm.ptr<1>, f32
    llvm.return %1 : f32
  }
}
