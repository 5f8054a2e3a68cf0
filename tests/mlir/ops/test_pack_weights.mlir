// ----- PAYLOAD

func.func @f(%a: tensor<8x64xf32>, %w: memref<64x100xf32> {tuner.weight}, %c: tensor<8x48xf32>,
             %d: tensor<8x16xf32>) -> (tensor<8x48xf32>, tensor<8x16xf32>) {
  %c0 = arith.constant 0 : index
  %c48 = arith.constant 48 : index
  %c96 = arith.constant 96 : index
  %zero = arith.constant 0.0 : f32
  %weight = bufferization.to_tensor %w restrict : memref<64x100xf32> to tensor<64x100xf32>
  %sums = scf.for %j = %c0 to %c96 step %c48 iter_args(%s = %c) -> (tensor<8x48xf32>) {
    %b = tensor.extract_slice %weight[0, %j] [64, 48] [1, 1] : tensor<64x100xf32> to tensor<64x48xf32>
    %p = linalg.matmul ins(%a, %b : tensor<8x64xf32>, tensor<64x48xf32>) outs(%s : tensor<8x48xf32>)
      -> tensor<8x48xf32>
    scf.yield %p : tensor<8x48xf32>
  }
  %rest = tensor.extract_slice %weight[0, 96] [64, 4] [1, 1] : tensor<64x100xf32> to tensor<64x4xf32>
  %last = tensor.pad %rest low[0, 0] high[0, 12] {
  ^bb0(%i: index, %k: index):
    tensor.yield %zero : f32
  } : tensor<64x4xf32> to tensor<64x16xf32>
  %q = linalg.matmul ins(%a, %last : tensor<8x64xf32>, tensor<64x16xf32>) outs(%d : tensor<8x16xf32>)
    -> tensor<8x16xf32>
  return %sums, %q : tensor<8x48xf32>, tensor<8x16xf32>
}
// ----- ONE_PANEL

func.func @f(%a: tensor<8x64xf32>, %w: memref<64x40xf32> {tuner.weight}, %c: tensor<8x40xf32>)
    -> tensor<8x40xf32> {
  %weight = bufferization.to_tensor %w restrict : memref<64x40xf32> to tensor<64x40xf32>
  %p = linalg.matmul ins(%a, %weight : tensor<8x64xf32>, tensor<64x40xf32>) outs(%c : tensor<8x40xf32>)
    -> tensor<8x40xf32>
  return %p : tensor<8x40xf32>
}
