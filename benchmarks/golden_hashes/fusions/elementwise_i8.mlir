#map = affine_map<(d0, d1) -> (d0, d1)>
module {
  func.func @fusion(%arg0: memref<6x50xf32>, %arg1: memref<6x50xi8>) attributes {tuner.bytes = 1500 : i64, tuner.contractions = 0 : i64, tuner.copy = 0 : i64, tuner.loops = array<i64: 6, 50>, tuner.transposed = 0 : i64, tuner.weights = 0 : i64} {
    %0 = bufferization.to_tensor %arg0 restrict : memref<6x50xf32> to tensor<6x50xf32>
    %1 = bufferization.to_tensor %arg1 restrict writable : memref<6x50xi8> to tensor<6x50xi8>
    %2 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%0 : tensor<6x50xf32>) outs(%1 : tensor<6x50xi8>) attrs =  {root} {
    ^bb0(%in: f32, %out: i8):
      %cst = arith.constant 3.200000e+01 : f32
      %cst_0 = arith.constant -1.280000e+02 : f32
      %cst_1 = arith.constant 1.270000e+02 : f32
      %3 = arith.mulf %in, %cst : f32
      %4 = math.roundeven %3 : f32
      %5 = arith.cmpf olt, %4, %cst_0 : f32
      %6 = arith.select %5, %cst_0, %4 : f32
      %7 = arith.cmpf ogt, %6, %cst_1 : f32
      %8 = arith.select %7, %cst_1, %6 : f32
      %9 = arith.fptosi %8 : f32 to i8
      linalg.yield %9 : i8
    } -> tensor<6x50xi8>
    bufferization.materialize_in_destination %2 in restrict writable %arg1 : (tensor<6x50xi8>, memref<6x50xi8>) -> ()
    return
  }
}
