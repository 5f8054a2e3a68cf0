module {
  func.func @f(%arg0: index, %arg1: memref<2xf32>) {
    gpu.launch blocks(%arg2, %arg3, %arg4) in (%arg8 = %arg0, %arg9 = %arg0, %arg10 = %arg0) threads(%arg5, %arg6, %arg7) in (%arg11 = %arg0, %arg12 = %arg0, %arg13 = %arg0) {
      %0 = llvm.mlir.undef : !llvm.struct<(f32, f32)>
      %1 = llvm.mlir.undef : !llvm.struct<(f32, f32)>
      %2 = llvm.extractvalue %1[0] : !llvm.struct<(f32, f32)> 
      %3 = llvm.extractvalue %0[1] : !llvm.struct<(f32, f32)> 
      memref.store %2, %arg1[%arg2] : memref<2xf32>
      memref.store %3, %arg1[%arg0] : memref<2xf32>
      gpu.terminator
    }
    return
  }
}
