#map = affine_map<()[s0] -> (s0 floordiv 8)>
#map1 = affine_map<()[s0] -> (s0 mod 8)>
#map2 = affine_map<()[s0] -> (s0 mod 8 + 8)>
module {
  func.func @f(%arg0: memref<64xvector<2x2xf16>>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %alloc = memref.alloc() : memref<64x64xf16, #gpu.address_space<workgroup>>
    %0 = gpu.lane_id
    %1 = affine.apply #map()[%0]
    scf.for %arg1 = %c0 to %c64 step %c1 {
      %2 = affine.apply #map1()[%0]
      %3 = nvgpu.ldmatrix %alloc[%1, %2] {numTiles = 4 : i32, transpose = true} : memref<64x64xf16, #gpu.address_space<workgroup>> -> vector<4x2xf16>
      %4 = vector.extract_strided_slice %3 {offsets = [0, 0], sizes = [2, 2], strides = [1, 1]} : vector<4x2xf16> to vector<2x2xf16>
      %5 = vector.extract_strided_slice %3 {offsets = [2, 0], sizes = [2, 2], strides = [1, 1]} : vector<4x2xf16> to vector<2x2xf16>
      memref.store %4, %arg0[%arg1] : memref<64xvector<2x2xf16>>
      %6 = affine.apply #map2()[%0]
      memref.store %5, %arg0[%arg1] : memref<64xvector<2x2xf16>>
    }
    return
  }
}
