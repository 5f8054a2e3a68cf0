module {
  func.func @f(%arg0: memref<64x96xf32, strided<[60, 1]>> {tuner.bounds = array<i64: 50, 60>, tuner.buffer = "a"}, %arg1: memref<96x48xf32, strided<[40, 1]>> {tuner.bounds = array<i64: 60, 40>, tuner.buffer = "b"}, %arg2: memref<64x48xf32, strided<[40, 1]>> {tuner.bounds = array<i64: 50, 40>, tuner.buffer = "c"}) {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = bufferization.to_tensor %arg0 restrict : memref<64x96xf32, strided<[60, 1]>> to tensor<64x96xf32>
    %1 = bufferization.to_tensor %arg1 restrict : memref<96x48xf32, strided<[40, 1]>> to tensor<96x48xf32>
    %2 = bufferization.to_tensor %arg2 restrict writable : memref<64x48xf32, strided<[40, 1]>> to tensor<64x48xf32>
    %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<64x48xf32>) -> tensor<64x48xf32>
    %4 = linalg.matmul ins(%0, %1 : tensor<64x96xf32>, tensor<96x48xf32>) outs(%3 : tensor<64x48xf32>) -> tensor<64x48xf32>
    bufferization.materialize_in_destination %4 in restrict writable %arg2 : (tensor<64x48xf32>, memref<64x48xf32, strided<[40, 1]>>) -> ()
    return
  }
}
