module {
  func.func @f(%arg0: tensor<8x64xf32>, %arg1: memref<3x64x48xf32> {tuner.packing = 48 : i64, tuner.weight}, %arg2: tensor<8x48xf32>, %arg3: tensor<8x16xf32>) -> (tensor<8x48xf32>, tensor<8x16xf32>) {
    %0 = bufferization.to_tensor %arg1 restrict : memref<3x64x48xf32> to tensor<3x64x48xf32>
    %1 = tensor.empty() : tensor<64x100xf32>
    %c0 = arith.constant 0 : index
    %c48 = arith.constant 48 : index
    %c96 = arith.constant 96 : index
    %cst = arith.constant 0.000000e+00 : f32
    %2 = scf.for %arg4 = %c0 to %c96 step %c48 iter_args(%arg5 = %arg2) -> (tensor<8x48xf32>) {
      %c48_1 = arith.constant 48 : index
      %4 = arith.divui %arg4, %c48_1 : index
      %extracted_slice_2 = tensor.extract_slice %0[%4, 0, 0] [1, 64, 48] [1, 1, 1] : tensor<3x64x48xf32> to tensor<64x48xf32>
      %extracted_slice_3 = tensor.extract_slice %1[0, %arg4] [64, 48] [1, 1] : tensor<64x100xf32> to tensor<64x48xf32>
      %5 = linalg.matmul ins(%arg0, %extracted_slice_2 : tensor<8x64xf32>, tensor<64x48xf32>) outs(%arg5 : tensor<8x48xf32>) -> tensor<8x48xf32>
      scf.yield %5 : tensor<8x48xf32>
    }
    %extracted_slice = tensor.extract_slice %1[0, 96] [64, 4] [1, 1] : tensor<64x100xf32> to tensor<64x4xf32>
    %extracted_slice_0 = tensor.extract_slice %0[2, 0, 0] [1, 64, 16] [1, 1, 1] : tensor<3x64x48xf32> to tensor<64x16xf32>
    %padded = tensor.pad %extracted_slice low[0, 0] high[0, 12] {
    ^bb0(%arg4: index, %arg5: index):
      tensor.yield %cst : f32
    } : tensor<64x4xf32> to tensor<64x16xf32>
    %3 = linalg.matmul ins(%arg0, %extracted_slice_0 : tensor<8x64xf32>, tensor<64x16xf32>) outs(%arg3 : tensor<8x16xf32>) -> tensor<8x16xf32>
    return %2, %3 : tensor<8x48xf32>, tensor<8x16xf32>
  }
}
