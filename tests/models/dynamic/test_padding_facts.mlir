// ----- CAUSAL
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>
#all = affine_map<(i, j) -> (i, j)>
func.func @causal(%scores: tensor<?x?xf32>, %v: tensor<?x3xf32>) -> tensor<?x3xf32> {
  %c0 = arith.constant 0 : index
  %later = arith.constant 0 : i64
  %least = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %v, %c0 : tensor<?x3xf32>
  %line = tensor.empty(%n) : tensor<?xi64>
  %truths = tensor.empty(%n, %n) : tensor<?x?xi1>
  %square = tensor.empty(%n, %n) : tensor<?x?xf32>
  %rows = tensor.empty(%n) : tensor<?xf32>
  %out = tensor.empty(%n) : tensor<?x3xf32>
  %positions = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
    outs(%line : tensor<?xi64>) {
  ^bb0(%old: i64):
    %index = linalg.index 0 : index
    %position = arith.index_cast %index : index to i64
    linalg.yield %position : i64
  } -> tensor<?xi64>
  %seen = linalg.generic {indexing_maps = [#column, #row, #all], iterator_types = ["parallel", "parallel"]}
    ins(%positions, %positions : tensor<?xi64>, tensor<?xi64>) outs(%truths : tensor<?x?xi1>) {
  ^bb0(%key: i64, %query: i64, %old: i1):
    %distance = arith.subi %key, %query : i64
    %is_seen = arith.cmpi sle, %distance, %later : i64
    linalg.yield %is_seen : i1
  } -> tensor<?x?xi1>
  %shown = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]}
    ins(%seen, %scores : tensor<?x?xi1>, tensor<?x?xf32>) outs(%square : tensor<?x?xf32>) {
  ^bb0(%is_seen: i1, %score: f32, %old: f32):
    %chosen = arith.select %is_seen, %score, %least : f32
    linalg.yield %chosen : f32
  } -> tensor<?x?xf32>
  %lows = linalg.fill ins(%least : f32) outs(%rows : tensor<?xf32>) -> tensor<?xf32>
  %max = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
    ins(%shown : tensor<?x?xf32>) outs(%lows : tensor<?xf32>) {
  ^bb0(%in: f32, %old: f32):
    %new = arith.maximumf %in, %old : f32
    linalg.yield %new : f32
  } -> tensor<?xf32>
  %exp = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
    ins(%shown, %max : tensor<?x?xf32>, tensor<?xf32>) outs(%square : tensor<?x?xf32>) {
  ^bb0(%in: f32, %top: f32, %old: f32):
    %below = arith.subf %in, %top : f32
    %e = math.exp %below : f32
    linalg.yield %e : f32
  } -> tensor<?x?xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%rows : tensor<?xf32>) -> tensor<?xf32>
  %sum = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
    ins(%exp : tensor<?x?xf32>) outs(%zeros : tensor<?xf32>) {
  ^bb0(%in: f32, %old: f32):
    %new = arith.addf %in, %old : f32
    linalg.yield %new : f32
  } -> tensor<?xf32>
  %weights = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
    ins(%exp, %sum : tensor<?x?xf32>, tensor<?xf32>) outs(%square : tensor<?x?xf32>) {
  ^bb0(%in: f32, %total: f32, %old: f32):
    %weight = arith.divf %in, %total : f32
    linalg.yield %weight : f32
  } -> tensor<?x?xf32>
  %start = linalg.fill ins(%zero : f32) outs(%out : tensor<?x3xf32>) -> tensor<?x3xf32>
  %mixed = linalg.matmul ins(%weights, %v : tensor<?x?xf32>, tensor<?x3xf32>) outs(%start : tensor<?x3xf32>)
    -> tensor<?x3xf32>
  return %mixed : tensor<?x3xf32>
}
// ----- COMMON_BITS
#row = affine_map<(i, j) -> (i)>
#all = affine_map<(i, j) -> (i, j)>
func.func @common_bits(%x: tensor<?x?xi64>) -> tensor<?xi64> {
  %c0 = arith.constant 0 : index
  %other = arith.constant 1 : i64
  %bits = arith.constant -1 : i64
  %n = tensor.dim %x, %c0 : tensor<?x?xi64>
  %square = tensor.empty(%n, %n) : tensor<?x?xi64>
  %rows = tensor.empty(%n) : tensor<?xi64>
  %shown = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
    ins(%x : tensor<?x?xi64>) outs(%square : tensor<?x?xi64>) {
  ^bb0(%in: i64, %old: i64):
    %query = linalg.index 0 : index
    %key = linalg.index 1 : index
    %is_seen = arith.cmpi sle, %key, %query : index
    %chosen = arith.select %is_seen, %in, %other : i64
    linalg.yield %chosen : i64
  } -> tensor<?x?xi64>
  %start = linalg.fill ins(%bits : i64) outs(%rows : tensor<?xi64>) -> tensor<?xi64>
  %common = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
    ins(%shown : tensor<?x?xi64>) outs(%start : tensor<?xi64>) {
  ^bb0(%in: i64, %old: i64):
    %new = arith.andi %in, %old : i64
    linalg.yield %new : i64
  } -> tensor<?xi64>
  return %common : tensor<?xi64>
}
