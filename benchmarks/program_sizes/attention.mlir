// An attention of 8 heads over n rows, without a mask.
#row = affine_map<(b, i, j) -> (b, i)>
#all = affine_map<(b, i, j) -> (b, i, j)>
#queries = affine_map<(b, i, j, d) -> (b, i, d)>
#keys = affine_map<(b, i, j, d) -> (b, j, d)>
#scores = affine_map<(b, i, j, d) -> (b, i, j)>
func.func @attention(%q: tensor<8x?x64xf32>, %k: tensor<8x?x64xf32>, %v: tensor<8x?x64xf32>)
    -> tensor<8x?x64xf32> {
  %c1 = arith.constant 1 : index
  %least = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %q, %c1 : tensor<8x?x64xf32>
  %square = tensor.empty(%n, %n) : tensor<8x?x?xf32>
  %rows = tensor.empty(%n) : tensor<8x?xf32>
  %out = tensor.empty(%n) : tensor<8x?x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%square : tensor<8x?x?xf32>) -> tensor<8x?x?xf32>
  %scores = linalg.generic {indexing_maps = [#queries, #keys, #scores],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
    ins(%q, %k : tensor<8x?x64xf32>, tensor<8x?x64xf32>) outs(%start : tensor<8x?x?xf32>) {
  ^bb0(%x: f32, %y: f32, %old: f32):
    %product = arith.mulf %x, %y : f32
    %new = arith.addf %product, %old : f32
    linalg.yield %new : f32
  } -> tensor<8x?x?xf32>
  %lows = linalg.fill ins(%least : f32) outs(%rows : tensor<8x?xf32>) -> tensor<8x?xf32>
  %max = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%scores : tensor<8x?x?xf32>) outs(%lows : tensor<8x?xf32>) {
  ^bb0(%in: f32, %old: f32):
    %new = arith.maximumf %in, %old : f32
    linalg.yield %new : f32
  } -> tensor<8x?xf32>
  %exp = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%scores, %max : tensor<8x?x?xf32>, tensor<8x?xf32>) outs(%square : tensor<8x?x?xf32>) {
  ^bb0(%in: f32, %top: f32, %old: f32):
    %below = arith.subf %in, %top : f32
    %e = math.exp %below : f32
    linalg.yield %e : f32
  } -> tensor<8x?x?xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%rows : tensor<8x?xf32>) -> tensor<8x?xf32>
  %sum = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%exp : tensor<8x?x?xf32>) outs(%zeros : tensor<8x?xf32>) {
  ^bb0(%in: f32, %old: f32):
    %new = arith.addf %in, %old : f32
    linalg.yield %new : f32
  } -> tensor<8x?xf32>
  %weights = linalg.generic {indexing_maps = [#all, #row, #all],
      iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%exp, %sum : tensor<8x?x?xf32>, tensor<8x?xf32>) outs(%square : tensor<8x?x?xf32>) {
  ^bb0(%in: f32, %total: f32, %old: f32):
    %share = arith.divf %in, %total : f32
    linalg.yield %share : f32
  } -> tensor<8x?x?xf32>
  %first = linalg.fill ins(%zero : f32) outs(%out : tensor<8x?x64xf32>) -> tensor<8x?x64xf32>
  %result = linalg.batch_matmul ins(%weights, %v : tensor<8x?x?xf32>, tensor<8x?x64xf32>)
    outs(%first : tensor<8x?x64xf32>) -> tensor<8x?x64xf32>
  return %result : tensor<8x?x64xf32>
}
