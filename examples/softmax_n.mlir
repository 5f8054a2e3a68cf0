// A softmax of three rows of n numbers, for any n of a range.
//
//   tuner run examples/softmax_n.mlir --target cpu --sizes 1..40
#row = affine_map<(i, j) -> (i)>
#all = affine_map<(i, j) -> (i, j)>
func.func @softmax(%x: tensor<3x?xf32>) -> tensor<3x?xf32> {
  %c1 = arith.constant 1 : index
  %least = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c1 : tensor<3x?xf32>
  %rows = tensor.empty() : tensor<3xf32>
  %empty = tensor.empty(%n) : tensor<3x?xf32>
  %lows = linalg.fill ins(%least : f32) outs(%rows : tensor<3xf32>) -> tensor<3xf32>
  %max = linalg.reduce { arith.maximumf } ins(%x : tensor<3x?xf32>) outs(%lows : tensor<3xf32>) dimensions = [1]
  %exp = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
    ins(%x, %max : tensor<3x?xf32>, tensor<3xf32>) outs(%empty : tensor<3x?xf32>) {
  ^bb0(%in: f32, %top: f32, %old: f32):
    %below = arith.subf %in, %top : f32
    %e = math.exp %below : f32
    linalg.yield %e : f32
  } -> tensor<3x?xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%rows : tensor<3xf32>) -> tensor<3xf32>
  %sum = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
    ins(%exp : tensor<3x?xf32>) outs(%zeros : tensor<3xf32>) {
  ^bb0(%in: f32, %old: f32):
    %new = arith.addf %in, %old : f32
    linalg.yield %new : f32
  } -> tensor<3xf32>
  %result = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
    ins(%exp, %sum : tensor<3x?xf32>, tensor<3xf32>) outs(%empty : tensor<3x?xf32>) {
  ^bb0(%in: f32, %total: f32, %old: f32):
    %share = arith.divf %in, %total : f32
    linalg.yield %share : f32
  } -> tensor<3x?xf32>
  return %result : tensor<3x?xf32>
}
