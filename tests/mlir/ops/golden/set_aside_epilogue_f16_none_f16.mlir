module {
  func.func @f(%arg0: memref<16x8xf16, strided<[7, 1]>> {tuner.bounds = array<i64: 15, 7>, tuner.buffer = "a"}, %arg1: memref<8x32xf16, strided<[30, 1]>> {tuner.bounds = array<i64: 7, 30>, tuner.buffer = "b"}, %arg2: memref<16x32xf32, strided<[30, 1]>> {tuner.bounds = array<i64: 15, 30>, tuner.buffer = "c"}) {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = bufferization.to_tensor %arg0 restrict : memref<16x8xf16, strided<[7, 1]>> to tensor<16x8xf16>
    %1 = bufferization.to_tensor %arg1 restrict : memref<8x32xf16, strided<[30, 1]>> to tensor<8x32xf16>
    %2 = bufferization.to_tensor %arg2 restrict writable : memref<16x32xf32, strided<[30, 1]>> to tensor<16x32xf32>
    %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<16x32xf32>) -> tensor<16x32xf32>
    %4 = linalg.matmul ins(%0, %1 : tensor<16x8xf16>, tensor<8x32xf16>) outs(%3 : tensor<16x32xf32>) -> tensor<16x32xf32>
    bufferization.materialize_in_destination %4 in restrict writable %arg2 : (tensor<16x32xf32>, memref<16x32xf32, strided<[30, 1]>>) -> ()
    return
  }
  func.func private @f_epilogue(%arg0: f32) -> f16 {
    %0 = arith.truncf %arg0 : f32 to f16
    return %0 : f16
  }
}
