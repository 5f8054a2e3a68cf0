module {
  func.func @f(%arg0: memref<16x8xf16, strided<[7, 1]>> {tuner.bounds = array<i64: 15, 7>, tuner.buffer = "a"}, %arg1: memref<8x32xf16, strided<[30, 1]>> {tuner.bounds = array<i64: 7, 30>, tuner.buffer = "b"}, %arg2: memref<32xf32> {tuner.bounds = array<i64: 30>, tuner.buffer = "bias"}, %arg3: memref<16x32xf32, strided<[30, 1]>> {tuner.bounds = array<i64: 15, 30>, tuner.buffer = "c"}) {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = bufferization.to_tensor %arg0 restrict : memref<16x8xf16, strided<[7, 1]>> to tensor<16x8xf16>
    %1 = bufferization.to_tensor %arg1 restrict : memref<8x32xf16, strided<[30, 1]>> to tensor<8x32xf16>
    %2 = bufferization.to_tensor %arg2 restrict : memref<32xf32> to tensor<32xf32>
    %3 = bufferization.to_tensor %arg3 restrict writable : memref<16x32xf32, strided<[30, 1]>> to tensor<16x32xf32>
    %4 = linalg.fill ins(%cst : f32) outs(%3 : tensor<16x32xf32>) -> tensor<16x32xf32>
    %5 = linalg.matmul ins(%0, %1 : tensor<16x8xf16>, tensor<8x32xf16>) outs(%4 : tensor<16x32xf32>) -> tensor<16x32xf32>
    bufferization.materialize_in_destination %5 in restrict writable %arg3 : (tensor<16x32xf32>, memref<16x32xf32, strided<[30, 1]>>) -> ()
    return
  }
  func.func private @f_epilogue(%arg0: f32, %arg1: f32 {tuner.argument = 2 : i64, tuner.dimensions = array<i64: 1>}) -> f32 {
    %0 = arith.addf %arg0, %arg1 : f32
    %cst = arith.constant 0.000000e+00 : f32
    %1 = arith.maximumf %0, %cst : f32
    return %1 : f32
  }
}
