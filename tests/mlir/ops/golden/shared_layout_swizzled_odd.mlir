#map = affine_map<()[s0] -> (((s0 floordiv 4) mod 2) * 8)>
module {
  func.func @f(%arg0: memref<64x64xf16>, %arg1: memref<64x64xf16>, %arg2: index, %arg3: index) {
    %alloc = memref.alloc() : memref<16x48xf16, #gpu.address_space<workgroup>>
    %alloc_0 = memref.alloc() {alignment = 64 : i64} : memref<16x48xf16, #gpu.address_space<workgroup>>
    %0 = affine.apply #map()[%arg2]
    %1 = arith.xori %arg3, %0 : index
    %2 = nvgpu.device_async_copy %arg0[%arg2, %arg3], %alloc[%arg2, %1], 8 {bypassL1} : memref<64x64xf16> to memref<16x48xf16, #gpu.address_space<workgroup>>
    %3 = affine.apply #map()[%arg2]
    %4 = arith.xori %arg3, %3 : index
    %5 = nvgpu.ldmatrix %alloc[%arg2, %4] {numTiles = 4 : i32, transpose = false} : memref<16x48xf16, #gpu.address_space<workgroup>> -> vector<4x2xf16>
    %6 = vector.load %arg0[%arg2, %arg3] : memref<64x64xf16>, vector<8xf16>
    vector.store %6, %alloc_0[%arg2, %arg3] : memref<16x48xf16, #gpu.address_space<workgroup>>, vector<8xf16>
    %7 = vector.load %alloc_0[%arg3, %arg2] : memref<16x48xf16, #gpu.address_space<workgroup>>, vector<8xf16>
    vector.store %7, %arg1[%arg2, %arg3] : memref<64x64xf16>, vector<8xf16>
    return
  }
}
