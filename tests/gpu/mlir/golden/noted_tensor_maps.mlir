module {
  gpu.module @m {
    gpu.func @k(%arg0: !llvm.ptr, %arg1: memref<4xf32>, %arg2: !llvm.ptr) kernel attributes {tuner.tensor_maps = array<i64: 0, 2>} {
      gpu.return
    }
    gpu.func @plain(%arg0: memref<4xf32>) kernel {
      gpu.return
    }
  }
}
