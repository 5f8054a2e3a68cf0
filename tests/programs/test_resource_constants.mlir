// ----- GLOBAL
memref.global "private" constant @w : memref<4xf32> = dense_resource<w>
func.func @main(%a: memref<4xf32>) {
  %w = memref.get_global @w : memref<4xf32>
  memref.copy %w, %a : memref<4xf32> to memref<4xf32>
  return
}
// ----- PLUS_CONSTANT
func.func @main(%a: tensor<37x5xELEMENT>) -> tensor<37x5xELEMENT> {
  %w = arith.constant dense_resource<CONSTANT> : tensor<37x5xELEMENT>
  %e = tensor.empty() : tensor<37x5xELEMENT>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
    ins(%a, %w : tensor<37x5xELEMENT>, tensor<37x5xELEMENT>) outs(%e : tensor<37x5xELEMENT>) {
  ^bb0(%x: ELEMENT, %y: ELEMENT, %z: ELEMENT):
    %s = arith.ADD %x, %y : ELEMENT
    linalg.yield %s : ELEMENT
  } -> tensor<37x5xELEMENT>
  return %r : tensor<37x5xELEMENT>
}
// ----- TIMES_CONSTANT
func.func @main(%a: tensor<4xSIZExf32>) -> tensor<4xSIZExf32> {
  %w = arith.constant dense_resource<torch_tensor_SIZE_SIZE_torch.float32> : tensor<SIZExSIZExf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4xSIZExf32>
  %e2 = tensor.empty() : tensor<SIZExSIZExf32>
  %t = linalg.transpose ins(%w : tensor<SIZExSIZExf32>) outs(%e2 : tensor<SIZExSIZExf32>) permutation = [1, 0]
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4xSIZExf32>) -> tensor<4xSIZExf32>
  %p = linalg.matmul ins(%a, %t : tensor<4xSIZExf32>, tensor<SIZExSIZExf32>) outs(%f : tensor<4xSIZExf32>) -> tensor<4xSIZExf32>
  %q = linalg.matmul ins(%p, %w : tensor<4xSIZExf32>, tensor<SIZExSIZExf32>) outs(%f : tensor<4xSIZExf32>) -> tensor<4xSIZExf32>
  return %q : tensor<4xSIZExf32>
}
