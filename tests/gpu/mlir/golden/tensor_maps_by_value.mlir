module {
  gpu.module @m {
    llvm.func @k(%arg0: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, llvm.noalias, nvvm.grid_constant}, %arg1: !llvm.ptr {llvm.nonnull}) attributes {gpu.kernel, nvvm.kernel} {
      llvm.return
    }
  }
}
