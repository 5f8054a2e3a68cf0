// The mean of exponentials over n rows.
func.func @mean(%x: tensor<?x512xf32>) -> tensor<512xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x512xf32>
  %integer = arith.index_cast %n : index to i64
  %count = arith.sitofp %integer : i64 to f32
  %one = arith.constant 1.0 : f32
  %share = arith.divf %one, %count : f32
  %empty = tensor.empty() : tensor<512xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<512xf32>) -> tensor<512xf32>
  %exp = math.exp %x : tensor<?x512xf32>
  %sum = linalg.reduce { arith.addf } ins(%exp : tensor<?x512xf32>) outs(%zeros : tensor<512xf32>) dimensions = [0]
  %mean = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]}
    ins(%sum : tensor<512xf32>) outs(%empty : tensor<512xf32>) {
  ^bb0(%total: f32, %old: f32):
    %y = arith.mulf %total, %share : f32
    linalg.yield %y : f32
  } -> tensor<512xf32>
  return %mean : tensor<512xf32>
}
