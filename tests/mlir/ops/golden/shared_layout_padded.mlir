#map = affine_map<()[s0] -> (s0 floordiv 2)>
#map1 = affine_map<()[s0, s1] -> ((s0 mod 2) * 32 + s1)>
module {
  func.func @f(%arg0: memref<64x64xf16>, %arg1: memref<64x64xf16>, %arg2: index, %arg3: index) {
    %alloc = memref.alloc() : memref<8x72xf16, #gpu.address_space<workgroup>>
    %alloc_0 = memref.alloc() {alignment = 64 : i64} : memref<8x80xf16, #gpu.address_space<workgroup>>
    %0 = affine.apply #map()[%arg2]
    %1 = affine.apply #map1()[%arg2, %arg3]
    %2 = nvgpu.device_async_copy %arg0[%arg2, %arg3], %alloc[%0, %1], 8 {bypassL1} : memref<64x64xf16> to memref<8x72xf16, #gpu.address_space<workgroup>>
    %3 = affine.apply #map()[%arg2]
    %4 = affine.apply #map1()[%arg2, %arg3]
    %5 = nvgpu.ldmatrix %alloc[%3, %4] {numTiles = 4 : i32, transpose = false} : memref<8x72xf16, #gpu.address_space<workgroup>> -> vector<4x2xf16>
    %6 = vector.load %arg0[%arg2, %arg3] : memref<64x64xf16>, vector<8xf16>
    %7 = affine.apply #map()[%arg2]
    %8 = affine.apply #map1()[%arg2, %arg3]
    vector.store %6, %alloc_0[%7, %8] : memref<8x80xf16, #gpu.address_space<workgroup>>, vector<8xf16>
    %9 = affine.apply #map()[%arg3]
    %10 = affine.apply #map1()[%arg3, %arg2]
    %11 = vector.load %alloc_0[%9, %10] : memref<8x80xf16, #gpu.address_space<workgroup>>, vector<8xf16>
    vector.store %11, %arg1[%arg2, %arg3] : memref<64x64xf16>, vector<8xf16>
    return
  }
}
