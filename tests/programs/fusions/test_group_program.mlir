// ----- GATHER
func.func @main(%i: tensor<3xi64>, %t: tensor<9x4xf32>) -> tensor<3x4xf32> {
  %e = tensor.empty() : tensor<3x4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a)>, affine_map<(a, b) -> (a, b)>],
      iterator_types = ["parallel", "parallel"]} ins(%i : tensor<3xi64>) outs(%e : tensor<3x4xf32>) {
  ^bb0(%n: i64, %o: f32):
    %row = arith.index_cast %n : i64 to index
    %column = linalg.index 1 : index
    %x = tensor.extract %t[%row, %column] : tensor<9x4xf32>
    linalg.yield %x : f32
  } -> tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}
// ----- MAXIMUM
func.func @main(%x: tensor<3x5xf32>) -> tensor<3xf32> {
  %least = arith.constant 0xFF800000 : f32
  %none = arith.constant 0 : i64
  %e = tensor.empty() : tensor<3xf32>
  %f = linalg.fill ins(%least : f32) outs(%e : tensor<3xf32>) -> tensor<3xf32>
  %g = tensor.empty() : tensor<3xi64>
  %h = linalg.fill ins(%none : i64) outs(%g : tensor<3xi64>) -> tensor<3xi64>
  %r:2 = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a)>,
      affine_map<(a, b) -> (a)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<3x5xf32>) outs(%f, %h : tensor<3xf32>, tensor<3xi64>) {
  ^bb0(%in: f32, %best: f32, %at: i64):
    %i = linalg.index 1 : index
    %n = arith.index_cast %i : index to i64
    %m = arith.maximumf %in, %best : f32
    %c = arith.cmpf ogt, %in, %best : f32
    %w = arith.select %c, %n, %at : i64
    linalg.yield %m, %w : f32, i64
  } -> (tensor<3xf32>, tensor<3xi64>)
  return %r#0 : tensor<3xf32>
}
// ----- INIT
func.func @init(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>, %c: tensor<2xf32>)
    -> (tensor<3x2xf32>, tensor<2xf32>, tensor<3x2xf32>, tensor<3x2xf32>) {
  %e = tensor.empty() : tensor<3x2xf32>
  %0 = linalg.transpose ins(%a : tensor<2x3xf32>) outs(%e : tensor<3x2xf32>) permutation = [1, 0]
  %1 = linalg.transpose ins(%b : tensor<2x3xf32>) outs(%e : tensor<3x2xf32>) permutation = [1, 0]
  %2 = math.absf %1 : tensor<3x2xf32>
  return %0, %c, %1, %2 : tensor<3x2xf32>, tensor<2xf32>, tensor<3x2xf32>, tensor<3x2xf32>
}
