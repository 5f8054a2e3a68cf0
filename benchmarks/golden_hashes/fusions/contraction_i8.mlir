#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d1)>
module {
  func.func @fusion(%arg0: memref<37x66xi8>, %arg1: memref<66x100xi8> {tuner.weight}, %arg2: memref<100xf32> {tuner.weight}, %arg3: memref<100xf32> {tuner.weight}, %arg4: memref<37x100xf32>) attributes {tuner.bytes = 24642 : i64, tuner.contractions = 1 : i64, tuner.copy = 0 : i64, tuner.loops = array<i64: 37, 100>, tuner.transposed = 0 : i64, tuner.weights = 1 : i64} {
    %0 = bufferization.to_tensor %arg0 restrict : memref<37x66xi8> to tensor<37x66xi8>
    %1 = bufferization.to_tensor %arg1 restrict : memref<66x100xi8> to tensor<66x100xi8>
    %2 = bufferization.to_tensor %arg2 restrict : memref<100xf32> to tensor<100xf32>
    %3 = bufferization.to_tensor %arg3 restrict : memref<100xf32> to tensor<100xf32>
    %4 = bufferization.to_tensor %arg4 restrict writable : memref<37x100xf32> to tensor<37x100xf32>
    %c0_i32 = arith.constant 0 : i32
    %5 = tensor.empty() : tensor<37x100xi32>
    %6 = linalg.fill ins(%c0_i32 : i32) outs(%5 : tensor<37x100xi32>) -> tensor<37x100xi32>
    %7 = linalg.matmul {contraction} ins(%0, %1 : tensor<37x66xi8>, tensor<66x100xi8>) outs(%6 : tensor<37x100xi32>) -> tensor<37x100xi32>
    %8 = linalg.generic {indexing_maps = [#map, #map1, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%7, %2, %3 : tensor<37x100xi32>, tensor<100xf32>, tensor<100xf32>) outs(%4 : tensor<37x100xf32>) attrs =  {root} {
    ^bb0(%in: i32, %in_0: f32, %in_1: f32, %out: f32):
      %9 = arith.sitofp %in : i32 to f32
      %10 = arith.mulf %9, %in_0 : f32
      %11 = arith.addf %10, %in_1 : f32
      %cst = arith.constant 0.000000e+00 : f32
      %12 = arith.cmpf ugt, %11, %cst : f32
      %13 = arith.select %12, %11, %cst : f32
      linalg.yield %13 : f32
    } -> tensor<37x100xf32>
    bufferization.materialize_in_destination %8 in restrict writable %arg4 : (tensor<37x100xf32>, memref<37x100xf32>) -> ()
    return
  }
}
