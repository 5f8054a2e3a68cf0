module {
  func.func @f(%arg0: memref<64x64xf16>, %arg1: memref<64x64xf16>, %arg2: index, %arg3: index) {
    %alloc = memref.alloc() : memref<16x40xf16, #gpu.address_space<workgroup>>
    %alloc_0 = memref.alloc() {alignment = 64 : i64} : memref<16x48xf16, #gpu.address_space<workgroup>>
    %0 = nvgpu.device_async_copy %arg0[%arg2, %arg3], %alloc[%arg2, %arg3], 8 {bypassL1} : memref<64x64xf16> to memref<16x40xf16, #gpu.address_space<workgroup>>
    %1 = nvgpu.ldmatrix %alloc[%arg2, %arg3] {numTiles = 4 : i32, transpose = false} : memref<16x40xf16, #gpu.address_space<workgroup>> -> vector<4x2xf16>
    %2 = vector.load %arg0[%arg2, %arg3] : memref<64x64xf16>, vector<8xf16>
    vector.store %2, %alloc_0[%arg2, %arg3] : memref<16x48xf16, #gpu.address_space<workgroup>>, vector<8xf16>
    %3 = vector.load %alloc_0[%arg3, %arg2] : memref<16x48xf16, #gpu.address_space<workgroup>>, vector<8xf16>
    vector.store %3, %arg1[%arg2, %arg3] : memref<64x64xf16>, vector<8xf16>
    return
  }
}
