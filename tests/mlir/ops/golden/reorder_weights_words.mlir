#map = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d6, d2 + d4, d3 + d5)>
#map1 = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d4, d5, d6, d1)>
#map2 = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3)>
module {
  func.func @f(%arg0: memref<1x3x6x6xbf16>, %arg1: memref<3x3x2x8xi32> {tuner.depth = 2 : i64, tuner.interleave = 2 : i64, tuner.order = array<i64: 2, 3, 1, 0>, tuner.packing = 8 : i64, tuner.run = 3 : i64, tuner.weight}, %arg2: memref<1x8x4x4xf32>) {
    %0 = bufferization.to_tensor %arg0 restrict : memref<1x3x6x6xbf16> to tensor<1x3x6x6xbf16>
    %1 = bufferization.to_tensor %arg1 restrict : memref<3x3x2x8xi32> to tensor<3x3x2x8xi32>
    %2 = bufferization.to_tensor %arg2 restrict writable : memref<1x8x4x4xf32> to tensor<1x8x4x4xf32>
    %alloc = memref.alloc() {alignment = 64 : i64} : memref<1x2x6x6xi32>
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c1_0 = arith.constant 1 : index
    scf.for %arg3 = %c0 to %c1 step %c1_0 {
      %c0_1 = arith.constant 0 : index
      %c1_2 = arith.constant 1 : index
      %c1_3 = arith.constant 1 : index
      scf.for %arg4 = %c0_1 to %c1_2 step %c1_3 {
        %c0_7 = arith.constant 0 : index
        %c6_8 = arith.constant 6 : index
        %c1_9 = arith.constant 1 : index
        scf.for %arg5 = %c0_7 to %c6_8 step %c1_9 {
          %c0_10 = arith.constant 0 : index
          %c2 = arith.constant 2 : index
          %5 = arith.muli %arg4, %c2 : index
          %c0_11 = arith.constant 0 : index
          %c0_12 = arith.constant 0 : index
          %c0_13 = arith.constant 0 : index
          %c0_14 = arith.constant 0 : index
          %6 = vector.constant_mask [6] : vector<16xi1>
          %cst = arith.constant dense<0.000000e+00> : vector<16xbf16>
          %7 = vector.maskedload %arg0[%arg3, %5, %arg5, %c0_10], %6, %cst : memref<1x3x6x6xbf16>, vector<16xi1>, vector<16xbf16> into vector<16xbf16>
          %8 = arith.bitcast %7 : vector<16xbf16> to vector<16xi16>
          %9 = arith.extui %8 : vector<16xi16> to vector<16xi32>
          %c1_15 = arith.constant 1 : index
          %10 = arith.addi %5, %c1_15 : index
          %c0_16 = arith.constant 0 : index
          %c0_17 = arith.constant 0 : index
          %c0_18 = arith.constant 0 : index
          %c0_19 = arith.constant 0 : index
          %11 = vector.constant_mask [6] : vector<16xi1>
          %cst_20 = arith.constant dense<0.000000e+00> : vector<16xbf16>
          %12 = vector.maskedload %arg0[%arg3, %10, %arg5, %c0_10], %11, %cst_20 : memref<1x3x6x6xbf16>, vector<16xi1>, vector<16xbf16> into vector<16xbf16>
          %13 = arith.bitcast %12 : vector<16xbf16> to vector<16xi16>
          %14 = arith.extui %13 : vector<16xi16> to vector<16xi32>
          %cst_21 = arith.constant dense<16> : vector<16xi32>
          %15 = arith.shli %14, %cst_21 : vector<16xi32>
          %16 = arith.ori %9, %15 : vector<16xi32>
          %17 = vector.constant_mask [6] : vector<16xi1>
          vector.maskedstore %alloc[%arg3, %arg4, %arg5, %c0_10], %17, %16 : memref<1x2x6x6xi32>, vector<16xi1>, vector<16xi32>
        }
      }
      %c1_4 = arith.constant 1 : index
      %c0_5 = arith.constant 0 : index
      %c6 = arith.constant 6 : index
      %c1_6 = arith.constant 1 : index
      scf.for %arg4 = %c0_5 to %c6 step %c1_6 {
        %c0_7 = arith.constant 0 : index
        %c2 = arith.constant 2 : index
        %5 = arith.muli %c1_4, %c2 : index
        %c0_8 = arith.constant 0 : index
        %c0_9 = arith.constant 0 : index
        %c0_10 = arith.constant 0 : index
        %c0_11 = arith.constant 0 : index
        %6 = vector.constant_mask [6] : vector<16xi1>
        %cst = arith.constant dense<0.000000e+00> : vector<16xbf16>
        %7 = vector.maskedload %arg0[%arg3, %5, %arg4, %c0_7], %6, %cst : memref<1x3x6x6xbf16>, vector<16xi1>, vector<16xbf16> into vector<16xbf16>
        %8 = arith.bitcast %7 : vector<16xbf16> to vector<16xi16>
        %9 = arith.extui %8 : vector<16xi16> to vector<16xi32>
        %10 = vector.constant_mask [6] : vector<16xi1>
        vector.maskedstore %alloc[%arg3, %c1_4, %arg4, %c0_7], %10, %9 : memref<1x2x6x6xi32>, vector<16xi1>, vector<16xi32>
      }
    }
    %3 = bufferization.to_tensor %alloc restrict : memref<1x2x6x6xi32> to tensor<1x2x6x6xi32>
    %4 = linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%3, %1 : tensor<1x2x6x6xi32>, tensor<3x3x2x8xi32>) outs(%2 : tensor<1x8x4x4xf32>) attrs =  {contraction} {
    ^bb0(%in: i32, %in_1: i32, %out: f32):
      %c16_i32 = arith.constant 16 : i32
      %5 = arith.shli %in, %c16_i32 : i32
      %6 = arith.bitcast %5 : i32 to f32
      %c16_i32_2 = arith.constant 16 : i32
      %7 = arith.shli %in_1, %c16_i32_2 : i32
      %8 = arith.bitcast %7 : i32 to f32
      %9 = arith.mulf %6, %8 : f32
      %10 = arith.addf %out, %9 : f32
      %c-65536_i32 = arith.constant -65536 : i32
      %11 = arith.andi %in, %c-65536_i32 : i32
      %12 = arith.bitcast %11 : i32 to f32
      %c-65536_i32_3 = arith.constant -65536 : i32
      %13 = arith.andi %in_1, %c-65536_i32_3 : i32
      %14 = arith.bitcast %13 : i32 to f32
      %15 = arith.mulf %12, %14 : f32
      %16 = arith.addf %10, %15 : f32
      linalg.yield %16 : f32
    } -> tensor<1x8x4x4xf32>
    bufferization.materialize_in_destination %4 in restrict writable %arg2 : (tensor<1x8x4x4xf32>, memref<1x8x4x4xf32>) -> ()
    return
  }
}
