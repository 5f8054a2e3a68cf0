// ----- TEXT
func.func @main(%a: tensor<LEAD4x6xTYPE>, %b: tensor<LEAD6x5xTYPE>) -> RESULT {
  %start = arith.constant START : i64
  %e = tensor.empty() : tensor<LEAD4x5xi64>
  %zeros = linalg.fill ins(%start : i64) outs(%e : tensor<LEAD4x5xi64>) -> tensor<LEAD4x5xi64>
  %w = linalg.NAME CAST ins(%a, %b : tensor<LEAD4x6xTYPE>, tensor<LEAD6x5xTYPE>)
    outs(%zeros : tensor<LEAD4x5xi64>) -> tensor<LEAD4x5xi64>
  %n = tensor.empty() : tensor<LEAD4x5xi32>
  %r = linalg.generic {
    indexing_maps = [affine_map<(DIMS) -> (DIMS)>, affine_map<(DIMS) -> (DIMS)>], iterator_types = [LOOPS]
  } ins(%w : tensor<LEAD4x5xi64>) outs(%n : tensor<LEAD4x5xi32>) {
    ^bb0(%x: i64, %o: i32):
      %y = arith.trunci %x : i64 to i32
      linalg.yield %y : i32
  } -> tensor<LEAD4x5xi32>
  return RETURNED : RESULT
}
