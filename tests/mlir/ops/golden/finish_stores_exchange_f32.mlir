#map = affine_map<()[s0] -> (s0 * 2 + 16)>
#map1 = affine_map<()[s0] -> (s0 * 2 + 8)>
#map2 = affine_map<()[s0] -> (s0 * 2)>
#map3 = affine_map<()[s0] -> (s0 mod 2)>
#map4 = affine_map<()[s0, s1] -> (s0 + (s1 mod 2) * 6)>
module {
  func.func @f(%arg0: memref<64x64xf32, strided<[64, 1]>> {tuner.bounds = array<i64: 50, 64>}, %arg1: index, %arg2: index, %arg3: vector<2xf32>) {
    %0 = affine.apply #map()[%arg2]
    %c50 = arith.constant 50 : index
    %1 = arith.cmpi slt, %arg1, %c50 : index
    scf.if %1 {
      vector.store %arg3, %arg0[%arg1, %0] : memref<64x64xf32, strided<[64, 1]>>, vector<2xf32>
    }
    %2 = affine.apply #map1()[%arg2]
    %3 = affine.apply #map2()[%arg2]
    %4 = gpu.lane_id
    %5 = vector.extract %arg3[0] : f32 from vector<2xf32>
    %6 = vector.extract %arg3[1] : f32 from vector<2xf32>
    %7 = vector.extract %arg3[0] : f32 from vector<2xf32>
    %8 = vector.extract %arg3[1] : f32 from vector<2xf32>
    %9 = affine.apply #map3()[%4]
    %c1 = arith.constant 1 : index
    %10 = arith.cmpi eq, %9, %c1 : index
    %11 = arith.select %10, %5, %7 : f32
    %c1_i32 = arith.constant 1 : i32
    %c32_i32 = arith.constant 32 : i32
    %shuffleResult, %valid = gpu.shuffle xor %11, %c1_i32, %c32_i32 : f32
    %12 = arith.select %10, %shuffleResult, %5 : f32
    %13 = arith.select %10, %7, %shuffleResult : f32
    %14 = arith.select %10, %6, %8 : f32
    %c1_i32_0 = arith.constant 1 : i32
    %c32_i32_1 = arith.constant 32 : i32
    %shuffleResult_2, %valid_3 = gpu.shuffle xor %14, %c1_i32_0, %c32_i32_1 : f32
    %15 = arith.select %10, %shuffleResult_2, %6 : f32
    %16 = arith.select %10, %8, %shuffleResult_2 : f32
    %17 = vector.from_elements %12, %15, %13, %16 : vector<4xf32>
    %18 = affine.apply #map4()[%3, %4]
    %c50_4 = arith.constant 50 : index
    %19 = arith.cmpi slt, %arg1, %c50_4 : index
    scf.if %19 {
      vector.store %17, %arg0[%arg1, %18] : memref<64x64xf32, strided<[64, 1]>>, vector<4xf32>
    }
    return
  }
}
