// ----- LIBRARY_CALL
gpu.module @m {
  llvm.func @__nv_expf(f32) -> f32
  llvm.func @k(%x: f32) {
    %y = llvm.call @__nv_expf(%x) : (f32) -> f32
    llvm.return
  }
}
