// ----- ARGMAX
#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @main(%x: tensor<5x9xf32>) -> tensor<5xi64> {
  %least = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0 : i64
  %a = tensor.empty() : tensor<5xf32>
  %b = tensor.empty() : tensor<5xi64>
  %lows = linalg.fill ins(%least : f32) outs(%a : tensor<5xf32>) -> tensor<5xf32>
  %zeros = linalg.fill ins(%zero : i64) outs(%b : tensor<5xi64>) -> tensor<5xi64>
  %r:2 = linalg.generic {indexing_maps = [#all, #row, #row], iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<5x9xf32>) outs(%lows, %zeros : tensor<5xf32>, tensor<5xi64>) {
  ^bb0(%in: f32, %best: f32, %at: i64):
    %j = linalg.index 1 : index
    %number = arith.index_cast %j : index to i64
    %more = arith.cmpf ogt, %in, %best : f32
    %new = arith.select %more, %in, %best : f32
    %where = arith.select %more, %number, %at : i64
    linalg.yield %new, %where : f32, i64
  } -> (tensor<5xf32>, tensor<5xi64>)
  return %r#1 : tensor<5xi64>
}
