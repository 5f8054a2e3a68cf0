#map = affine_map<(d0, d1) -> (d0, d1)>
module {
  func.func @f(%arg0: memref<50x60xbf16> {tuner.buffer = "a", tuner.of_groups = "rows"}, %arg1: memref<60x40xbf16> {tuner.buffer = "b", tuner.of_groups = "matrices"}, %arg2: memref<4xi32> {tuner.buffer = "offsets", tuner.of_groups = "offsets"}, %arg3: memref<50x40xbf16> {tuner.buffer = "c", tuner.of_groups = "results"}) {
    %cst = arith.constant 0.000000e+00 : f32
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %0 = bufferization.to_tensor %arg0 restrict : memref<50x60xbf16> to tensor<50x60xbf16>
    %1 = bufferization.to_tensor %arg1 restrict : memref<60x40xbf16> to tensor<60x40xbf16>
    %2 = bufferization.to_tensor %arg3 restrict writable : memref<50x40xbf16> to tensor<50x40xbf16>
    %3 = tensor.empty() : tensor<50x40xf32>
    %4 = linalg.fill ins(%cst : f32) outs(%3 : tensor<50x40xf32>) -> tensor<50x40xf32>
    %5 = linalg.matmul ins(%0, %1 : tensor<50x60xbf16>, tensor<60x40xbf16>) outs(%4 : tensor<50x40xf32>) -> tensor<50x40xf32>
    %6 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%5 : tensor<50x40xf32>) outs(%2 : tensor<50x40xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %7 = arith.truncf %in : f32 to bf16
      linalg.yield %7 : bf16
    } -> tensor<50x40xbf16>
    bufferization.materialize_in_destination %6 in restrict writable %arg3 : (tensor<50x40xbf16>, memref<50x40xbf16>) -> ()
    return
  }
}
