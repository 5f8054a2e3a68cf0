module {
  func.func @f(%arg0: tensor<8x64xf32>, %arg1: memref<1x64x48xf32> {tuner.packing = 48 : i64, tuner.weight}, %arg2: tensor<8x40xf32>) -> tensor<8x40xf32> {
    %0 = bufferization.to_tensor %arg1 restrict : memref<1x64x48xf32> to tensor<1x64x48xf32>
    %1 = tensor.empty() : tensor<64x40xf32>
    %extracted_slice = tensor.extract_slice %0[0, 0, 0] [1, 64, 40] [1, 1, 1] : tensor<1x64x48xf32> to tensor<64x40xf32>
    %2 = linalg.matmul ins(%arg0, %extracted_slice : tensor<8x64xf32>, tensor<64x40xf32>) outs(%arg2 : tensor<8x40xf32>) -> tensor<8x40xf32>
    return %2 : tensor<8x40xf32>
  }
}
