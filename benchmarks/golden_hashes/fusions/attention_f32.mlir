#map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d0, d1)>
module {
  func.func @fusion(%arg0: memref<2x61x20xf32>, %arg1: memref<2x20x144xf32>, %arg2: memref<2x144x33xf32>, %arg3: memref<2x61x33xf32>, %arg4: memref<2x61x33xf32>) attributes {tuner.bytes = 103024 : i64, tuner.contractions = 2 : i64, tuner.copy = 0 : i64, tuner.loops = array<i64: 2, 61, 33>, tuner.transposed = 0 : i64, tuner.weights = 0 : i64} {
    %0 = bufferization.to_tensor %arg0 restrict : memref<2x61x20xf32> to tensor<2x61x20xf32>
    %1 = bufferization.to_tensor %arg1 restrict : memref<2x20x144xf32> to tensor<2x20x144xf32>
    %2 = bufferization.to_tensor %arg2 restrict : memref<2x144x33xf32> to tensor<2x144x33xf32>
    %3 = bufferization.to_tensor %arg3 restrict : memref<2x61x33xf32> to tensor<2x61x33xf32>
    %4 = bufferization.to_tensor %arg4 restrict writable : memref<2x61x33xf32> to tensor<2x61x33xf32>
    %cst = arith.constant 0xFF800000 : f32
    %cst_0 = arith.constant 0.000000e+00 : f32
    %true = arith.constant true
    %cst_1 = arith.constant 1.250000e-01 : f32
    %5 = tensor.empty() : tensor<2x61x144xf32>
    %6 = linalg.fill ins(%cst_0 : f32) outs(%5 : tensor<2x61x144xf32>) -> tensor<2x61x144xf32>
    %7 = tensor.empty() : tensor<2x61xf32>
    %8 = linalg.fill ins(%cst : f32) outs(%7 : tensor<2x61xf32>) -> tensor<2x61xf32>
    %9 = tensor.empty() : tensor<2x61xf32>
    %10 = linalg.fill ins(%cst_0 : f32) outs(%9 : tensor<2x61xf32>) -> tensor<2x61xf32>
    %11 = tensor.empty() : tensor<2x61xi1>
    %12 = linalg.fill ins(%true : i1) outs(%11 : tensor<2x61xi1>) -> tensor<2x61xi1>
    %13 = tensor.empty() : tensor<2x61x33xf32>
    %14 = linalg.fill ins(%cst_0 : f32) outs(%13 : tensor<2x61x33xf32>) -> tensor<2x61x33xf32>
    %15 = linalg.batch_matmul {contraction} ins(%0, %1 : tensor<2x61x20xf32>, tensor<2x20x144xf32>) outs(%6 : tensor<2x61x144xf32>) -> tensor<2x61x144xf32>
    %16 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%15 : tensor<2x61x144xf32>) outs(%5 : tensor<2x61x144xf32>) {
    ^bb0(%in: f32, %out: f32):
      %24 = arith.mulf %in, %cst_1 : f32
      linalg.yield %24 : f32
    } -> tensor<2x61x144xf32>
    %17 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "reduction"]} ins(%16 : tensor<2x61x144xf32>) outs(%8 : tensor<2x61xf32>) {
    ^bb0(%in: f32, %out: f32):
      %24 = arith.maximumf %in, %out : f32
      linalg.yield %24 : f32
    } -> tensor<2x61xf32>
    %18 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%16, %17 : tensor<2x61x144xf32>, tensor<2x61xf32>) outs(%5 : tensor<2x61x144xf32>) {
    ^bb0(%in: f32, %in_2: f32, %out: f32):
      %24 = arith.subf %in, %in_2 : f32
      %25 = math.exp %24 : f32
      linalg.yield %25 : f32
    } -> tensor<2x61x144xf32>
    %19 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "reduction"]} ins(%18 : tensor<2x61x144xf32>) outs(%10 : tensor<2x61xf32>) {
    ^bb0(%in: f32, %out: f32):
      %24 = arith.addf %in, %out : f32
      linalg.yield %24 : f32
    } -> tensor<2x61xf32>
    %20 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "reduction"]} ins(%16 : tensor<2x61x144xf32>) outs(%12 : tensor<2x61xi1>) {
    ^bb0(%in: f32, %out: i1):
      %24 = arith.cmpf oeq, %in, %cst : f32
      %25 = arith.andi %24, %out : i1
      linalg.yield %25 : i1
    } -> tensor<2x61xi1>
    %21 = linalg.generic {indexing_maps = [#map, #map1, #map1, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%18, %19, %20 : tensor<2x61x144xf32>, tensor<2x61xf32>, tensor<2x61xi1>) outs(%5 : tensor<2x61x144xf32>) {
    ^bb0(%in: f32, %in_2: f32, %in_3: i1, %out: f32):
      %24 = arith.divf %in, %in_2 : f32
      %25 = arith.select %in_3, %cst_0, %24 : f32
      linalg.yield %25 : f32
    } -> tensor<2x61x144xf32>
    %22 = linalg.batch_matmul {contraction} ins(%21, %2 : tensor<2x61x144xf32>, tensor<2x144x33xf32>) outs(%14 : tensor<2x61x33xf32>) -> tensor<2x61x33xf32>
    %23 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%22, %3 : tensor<2x61x33xf32>, tensor<2x61x33xf32>) outs(%4 : tensor<2x61x33xf32>) attrs =  {root} {
    ^bb0(%in: f32, %in_2: f32, %out: f32):
      %24 = arith.addf %in, %in_2 : f32
      linalg.yield %24 : f32
    } -> tensor<2x61x33xf32>
    bufferization.materialize_in_destination %23 in restrict writable %arg4 : (tensor<2x61x33xf32>, memref<2x61x33xf32>) -> ()
    return
  }
}
