module {
  func.func @f(%arg0: memref<8x8xf32, strided<[6, 1]>> {tuner.bounds = array<i64: 6, 6>}, %arg1: memref<8x8xf32, strided<[4, 1]>> {tuner.bounds = array<i64: 5, 4>}, %arg2: memref<8x8xf32, strided<[4, 1]>> {tuner.bounds = array<i64: 4, 4>}) {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 1.000000e+00 : f32
    %0 = bufferization.to_tensor %arg0 restrict : memref<8x8xf32, strided<[6, 1]>> to tensor<8x8xf32>
    %1 = bufferization.to_tensor %arg1 restrict : memref<8x8xf32, strided<[4, 1]>> to tensor<8x8xf32>
    %2 = bufferization.to_tensor %arg2 restrict writable : memref<8x8xf32, strided<[4, 1]>> to tensor<8x8xf32>
    %3 = linalg.matmul ins(%0, %1 : tensor<8x8xf32>, tensor<8x8xf32>) outs(%2 : tensor<8x8xf32>) -> tensor<8x8xf32>
    bufferization.materialize_in_destination %3 in restrict writable %arg2 : (tensor<8x8xf32>, memref<8x8xf32, strided<[4, 1]>>) -> ()
    return
  }
}
