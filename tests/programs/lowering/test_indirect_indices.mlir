// ----- GATHER

#map = affine_map<(d0) -> (d0)>
func.func @main(%table: tensor<ROWSx4xf32>, %at: tensor<5xi64>) -> tensor<5xf32> {
  %e = tensor.empty() : tensor<5xf32>
  %r = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
    ins(%at : tensor<5xi64>) outs(%e : tensor<5xf32>) {
  ^bb0(%i: i64, %out: f32):
    %row = arith.index_cast %i : i64 to index
    %c4 = arith.constant 4 : index
    %n = linalg.index 0 : index
    %column = arith.remsi %n, %c4 : index
    %x = tensor.extract %table[%row, %column] : tensor<ROWSx4xf32>
    linalg.yield %x : f32
  } -> tensor<5xf32>
  return %r : tensor<5xf32>
}
// ----- LOOP

func.func @main(%table: tensor<8xi64>, %first: index) -> i64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0 : i64
  %sum, %last = scf.for %i = %c0 to %c8 step %c1 iter_args(%s = %zero, %at = %first) -> (i64, index) {
    %x = tensor.extract %table[%i] : tensor<8xi64>
    %y = tensor.extract %table[%at] : tensor<8xi64>
    %next = arith.index_cast %y : i64 to index
    %t = arith.addi %s, %x : i64
    scf.yield %t, %next : i64, index
  }
  return %sum : i64
}
