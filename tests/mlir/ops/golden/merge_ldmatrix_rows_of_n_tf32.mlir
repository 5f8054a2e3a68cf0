#map = affine_map<()[s0] -> (s0 floordiv 8)>
#map1 = affine_map<()[s0] -> (s0 mod 8)>
#map2 = affine_map<()[s0, s1] -> (s1 + (s0 floordiv 16) * 8)>
#map3 = affine_map<()[s0, s1] -> (s1 - (s0 floordiv 16) * 8)>
#map4 = affine_map<()[s0] -> (s0 mod 8 + 8)>
module {
  func.func @f(%arg0: memref<64xvector<2x1xf32>>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %alloc = memref.alloc() : memref<64x64xf32, #gpu.address_space<workgroup>>
    %0 = gpu.lane_id
    %1 = affine.apply #map()[%0]
    scf.for %arg1 = %c0 to %c64 step %c1 {
      %2 = affine.apply #map1()[%0]
      %3 = gpu.lane_id
      %4 = affine.apply #map2()[%3, %2]
      %5 = affine.apply #map3()[%3, %1]
      %6 = nvgpu.ldmatrix %alloc[%4, %5] {numTiles = 4 : i32, transpose = false} : memref<64x64xf32, #gpu.address_space<workgroup>> -> vector<4x1xf32>
      %7 = vector.extract_strided_slice %6 {offsets = [0, 0], sizes = [2, 1], strides = [1, 1]} : vector<4x1xf32> to vector<2x1xf32>
      %8 = vector.extract_strided_slice %6 {offsets = [2, 0], sizes = [2, 1], strides = [1, 1]} : vector<4x1xf32> to vector<2x1xf32>
      memref.store %7, %arg0[%arg1] : memref<64xvector<2x1xf32>>
      %9 = affine.apply #map4()[%0]
      memref.store %8, %arg0[%arg1] : memref<64xvector<2x1xf32>>
    }
    return
  }
}
