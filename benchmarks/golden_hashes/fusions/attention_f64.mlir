#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d0)>
module {
  func.func @fusion(%arg0: memref<29x12xf64>, %arg1: memref<12x70xf64>, %arg2: memref<29x70xf64>, %arg3: memref<70x20xf64>, %arg4: memref<29x20xf64>) attributes {tuner.bytes = 41584 : i64, tuner.contractions = 2 : i64, tuner.copy = 0 : i64, tuner.loops = array<i64: 29, 20>, tuner.transposed = 0 : i64, tuner.weights = 0 : i64} {
    %0 = bufferization.to_tensor %arg0 restrict : memref<29x12xf64> to tensor<29x12xf64>
    %1 = bufferization.to_tensor %arg1 restrict : memref<12x70xf64> to tensor<12x70xf64>
    %2 = bufferization.to_tensor %arg2 restrict : memref<29x70xf64> to tensor<29x70xf64>
    %3 = bufferization.to_tensor %arg3 restrict : memref<70x20xf64> to tensor<70x20xf64>
    %4 = bufferization.to_tensor %arg4 restrict writable : memref<29x20xf64> to tensor<29x20xf64>
    %cst = arith.constant 0xFFF0000000000000 : f64
    %cst_0 = arith.constant 0.000000e+00 : f64
    %true = arith.constant true
    %cst_1 = arith.constant 1.250000e-01 : f64
    %5 = tensor.empty() : tensor<29x70xf64>
    %6 = linalg.fill ins(%cst_0 : f64) outs(%5 : tensor<29x70xf64>) -> tensor<29x70xf64>
    %7 = tensor.empty() : tensor<29xf64>
    %8 = linalg.fill ins(%cst : f64) outs(%7 : tensor<29xf64>) -> tensor<29xf64>
    %9 = tensor.empty() : tensor<29xf64>
    %10 = linalg.fill ins(%cst_0 : f64) outs(%9 : tensor<29xf64>) -> tensor<29xf64>
    %11 = tensor.empty() : tensor<29xi1>
    %12 = linalg.fill ins(%true : i1) outs(%11 : tensor<29xi1>) -> tensor<29xi1>
    %13 = tensor.empty() : tensor<29x20xf64>
    %14 = linalg.fill ins(%cst_0 : f64) outs(%13 : tensor<29x20xf64>) -> tensor<29x20xf64>
    %15 = linalg.matmul {contraction} ins(%0, %1 : tensor<29x12xf64>, tensor<12x70xf64>) outs(%6 : tensor<29x70xf64>) -> tensor<29x70xf64>
    %16 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%15, %2 : tensor<29x70xf64>, tensor<29x70xf64>) outs(%5 : tensor<29x70xf64>) {
    ^bb0(%in: f64, %in_2: f64, %out: f64):
      %22 = arith.addf %in, %in_2 : f64
      linalg.yield %22 : f64
    } -> tensor<29x70xf64>
    %17 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "reduction"]} ins(%16 : tensor<29x70xf64>) outs(%8 : tensor<29xf64>) {
    ^bb0(%in: f64, %out: f64):
      %22 = arith.maximumf %in, %out : f64
      linalg.yield %22 : f64
    } -> tensor<29xf64>
    %18 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%16, %17 : tensor<29x70xf64>, tensor<29xf64>) outs(%5 : tensor<29x70xf64>) {
    ^bb0(%in: f64, %in_2: f64, %out: f64):
      %22 = arith.subf %in, %in_2 : f64
      %23 = math.exp %22 : f64
      linalg.yield %23 : f64
    } -> tensor<29x70xf64>
    %19 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "reduction"]} ins(%18 : tensor<29x70xf64>) outs(%10 : tensor<29xf64>) {
    ^bb0(%in: f64, %out: f64):
      %22 = arith.addf %in, %out : f64
      linalg.yield %22 : f64
    } -> tensor<29xf64>
    %20 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%18, %19 : tensor<29x70xf64>, tensor<29xf64>) outs(%5 : tensor<29x70xf64>) {
    ^bb0(%in: f64, %in_2: f64, %out: f64):
      %22 = arith.divf %in, %in_2 : f64
      linalg.yield %22 : f64
    } -> tensor<29x70xf64>
    %21 = linalg.matmul {contraction, root} ins(%20, %3 : tensor<29x70xf64>, tensor<70x20xf64>) outs(%14 : tensor<29x20xf64>) -> tensor<29x20xf64>
    bufferization.materialize_in_destination %21 in restrict writable %arg4 : (tensor<29x20xf64>, memref<29x20xf64>) -> ()
    return
  }
}
