// ----- REDUCTION
func.func @main(%x: tensor<5x2xf32>) -> tensor<5xf32> {
  %c = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<5xf32>
  %f = linalg.fill ins(%c : f32) outs(%e : tensor<5xf32>) -> tensor<5xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<5x2xf32>) outs(%f : tensor<5xf32>) {
  ^bb0(%in: f32, %out: f32):
    %m = arith.maximumf %in, %out : f32
    linalg.yield %m : f32
  } -> tensor<5xf32>
  return %r : tensor<5xf32>
}
// ----- HIDDEN
#whole = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @main(%x: tensor<5x2xf32>) -> tensor<5x2xf32> {
  %least = arith.constant 0xFF800000 : f32
  %one = arith.constant 1.0 : f32
  %true = arith.constant true
  %e = tensor.empty() : tensor<5xi1>
  %f = linalg.fill ins(%true : i1) outs(%e : tensor<5xi1>) -> tensor<5xi1>
  %h = linalg.generic {indexing_maps = [#whole, #row], iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<5x2xf32>) outs(%f : tensor<5xi1>) {
  ^bb0(%in: f32, %out: i1):
    %c = arith.cmpf oeq, %in, %least : f32
    %a = arith.andi %c, %out : i1
    linalg.yield %a : i1
  } -> tensor<5xi1>
  %t = tensor.empty() : tensor<5x2xf32>
  %r = linalg.generic {indexing_maps = [#whole, #row, #whole],
      iterator_types = ["parallel", "parallel"]}
    ins(%x, %h : tensor<5x2xf32>, tensor<5xi1>)
    outs(%t : tensor<5x2xf32>) {
  ^bb0(%in: f32, %all: i1, %out: f32):
    %s = arith.select %all, %one, %in : f32
    linalg.yield %s : f32
  } -> tensor<5x2xf32>
  return %r : tensor<5x2xf32>
}
// ----- CHOOSING
func.func @main(%m: tensor<2xi1>, %x: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %c = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x2xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>,
      affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
    ins(%m, %x : tensor<2xi1>, tensor<4x2xf32>) outs(%e : tensor<4x2xf32>) {
  ^bb0(%k: i1, %in: f32, %out: f32):
    %s = arith.select %k, %in, %c : f32
    linalg.yield %s : f32
  } -> tensor<4x2xf32>
  return %r : tensor<4x2xf32>
}
