module {
  func.func @f(%arg0: tensor<1x8x64xf32>, %arg1: tensor<1x64x32xf32>, %arg2: tensor<1x8x32xf32>) -> tensor<1x8x32xf32> {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<1x8x32xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<1x8x32xf32>) -> tensor<1x8x32xf32>
    %extracted_slice = tensor.extract_slice %arg0[0, 0, 0] [1, 8, 64] [1, 1, 1] : tensor<1x8x64xf32> to tensor<8x64xf32>
    %extracted_slice_0 = tensor.extract_slice %arg1[0, 0, 0] [1, 64, 32] [1, 1, 1] : tensor<1x64x32xf32> to tensor<64x32xf32>
    %extracted_slice_1 = tensor.extract_slice %arg2[0, 0, 0] [1, 8, 32] [1, 1, 1] : tensor<1x8x32xf32> to tensor<8x32xf32>
    %2 = linalg.matmul ins(%extracted_slice, %extracted_slice_0 : tensor<8x64xf32>, tensor<64x32xf32>) outs(%extracted_slice_1 : tensor<8x32xf32>) -> tensor<8x32xf32>
    %expanded = tensor.expand_shape %2 [[0, 1], [2]] output_shape [1, 8, 32] : tensor<8x32xf32> into tensor<1x8x32xf32>
    %3 = linalg.batch_matmul ins(%arg0, %arg1 : tensor<1x8x64xf32>, tensor<1x64x32xf32>) outs(%arg2 : tensor<1x8x32xf32>) -> tensor<1x8x32xf32>
    return %expanded : tensor<1x8x32xf32>
  }
}
