#map = affine_map<()[s0, s1] -> (s1 + (s0 floordiv 16) * 8 - ((s0 floordiv 8) mod 2) * 8)>
#map1 = affine_map<()[s0, s1] -> (s1 - ((s0 floordiv 16) * 8 - ((s0 floordiv 8) mod 2) * 8))>
module {
  func.func @f(%arg0: index, %arg1: index) -> vector<4x2xf16> {
    %alloc = memref.alloc() : memref<64x64xf16, #gpu.address_space<workgroup>>
    %0 = gpu.lane_id
    %1 = affine.apply #map()[%0, %arg0]
    %2 = affine.apply #map1()[%0, %arg1]
    %3 = nvgpu.ldmatrix %alloc[%1, %2] {numTiles = 4 : i32, transpose = true} : memref<64x64xf16, #gpu.address_space<workgroup>> -> vector<4x2xf16>
    return %3 : vector<4x2xf16>
  }
}
