module {
  func.func @fusion(%arg0: memref<2x9x19x16xi8>, %arg1: memref<32x9x3x3xi8> {tuner.weight}, %arg2: memref<2x32x9x14xi32>) attributes {tuner.bytes = 40320 : i64, tuner.channels = 9 : i64, tuner.contractions = 1 : i64, tuner.copy = 0 : i64, tuner.dimensions = "nfHW", tuner.loops = array<i64: 2, 32, 9, 14>, tuner.transposed = 0 : i64, tuner.weights = 1 : i64} {
    %0 = bufferization.to_tensor %arg0 restrict : memref<2x9x19x16xi8> to tensor<2x9x19x16xi8>
    %1 = bufferization.to_tensor %arg1 restrict : memref<32x9x3x3xi8> to tensor<32x9x3x3xi8>
    %c0_i32 = arith.constant 0 : i32
    %2 = tensor.empty() : tensor<2x32x9x14xi32>
    %3 = linalg.fill ins(%c0_i32 : i32) outs(%2 : tensor<2x32x9x14xi32>) -> tensor<2x32x9x14xi32>
    %4 = linalg.conv_2d_nchw_fchw {contraction, dilations = dense<1> : tensor<2xi64>, root, strides = dense<[2, 1]> : tensor<2xi64>} ins(%0, %1 : tensor<2x9x19x16xi8>, tensor<32x9x3x3xi8>) outs(%3 : tensor<2x32x9x14xi32>) -> tensor<2x32x9x14xi32>
    bufferization.materialize_in_destination %4 in restrict writable %arg2 : (tensor<2x32x9x14xi32>, memref<2x32x9x14xi32>) -> ()
    return
  }
}
