// gelu of a product: x / 2 * (1 + erf(x / sqrt(2))).
//
//   tuner run examples/matmul_gelu.mlir --target simulator --compare
#all = affine_map<(i, j) -> (i, j)>
func.func @main(%a: tensor<64x32xf32>, %b: tensor<32x48xf32>) -> tensor<64x48xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x48xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x48xf32>) -> tensor<64x48xf32>
  %product = linalg.matmul ins(%a, %b : tensor<64x32xf32>, tensor<32x48xf32>)
    outs(%start : tensor<64x48xf32>) -> tensor<64x48xf32>
  %gelu = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
    ins(%product : tensor<64x48xf32>) outs(%empty : tensor<64x48xf32>) {
  ^bb0(%x: f32, %out: f32):
    %root = arith.constant 0.70710678 : f32
    %half = arith.constant 0.5 : f32
    %one = arith.constant 1.0 : f32
    %scaled = arith.mulf %x, %root : f32
    %error = math.erf %scaled : f32
    %sum = arith.addf %error, %one : f32
    %part = arith.mulf %x, %half : f32
    %y = arith.mulf %part, %sum : f32
    linalg.yield %y : f32
  } -> tensor<64x48xf32>
  return %gelu : tensor<64x48xf32>
}
