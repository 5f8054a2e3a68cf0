// A softmax of each row: exponentials relative to the row's largest number, over their sum.
//
//   tuner run examples/softmax.mlir --target simulator --compare
#row = affine_map<(i, j) -> (i)>
#all = affine_map<(i, j) -> (i, j)>
func.func @main(%x: tensor<40x96xf32>) -> tensor<40x96xf32> {
  %least = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %one_per_row = tensor.empty() : tensor<40xf32>
  %empty = tensor.empty() : tensor<40x96xf32>
  %lows = linalg.fill ins(%least : f32) outs(%one_per_row : tensor<40xf32>) -> tensor<40xf32>
  %max = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<40x96xf32>) outs(%lows : tensor<40xf32>) {
  ^bb0(%in: f32, %old: f32):
    %new = arith.maximumf %in, %old : f32
    linalg.yield %new : f32
  } -> tensor<40xf32>
  %exp = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
    ins(%x, %max : tensor<40x96xf32>, tensor<40xf32>) outs(%empty : tensor<40x96xf32>) {
  ^bb0(%in: f32, %top: f32, %old: f32):
    %below = arith.subf %in, %top : f32
    %e = math.exp %below : f32
    linalg.yield %e : f32
  } -> tensor<40x96xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%one_per_row : tensor<40xf32>) -> tensor<40xf32>
  %sum = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
    ins(%exp : tensor<40x96xf32>) outs(%zeros : tensor<40xf32>) {
  ^bb0(%in: f32, %old: f32):
    %new = arith.addf %in, %old : f32
    linalg.yield %new : f32
  } -> tensor<40xf32>
  %result = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
    ins(%exp, %sum : tensor<40x96xf32>, tensor<40xf32>) outs(%empty : tensor<40x96xf32>) {
  ^bb0(%in: f32, %total: f32, %old: f32):
    %share = arith.divf %in, %total : f32
    linalg.yield %share : f32
  } -> tensor<40x96xf32>
  return %result : tensor<40x96xf32>
}
