// ----- EXTENDED
%NAME_empty = tensor.empty() : tensor<SHAPExf32>
%NAME_wide = linalg.generic {
  indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
  iterator_types = ["parallel", "parallel"]
} ins(%NAME : tensor<SHAPExbf16>) outs(%NAME_empty : tensor<SHAPExf32>) {
  ^bb0(%one: bf16, %before: f32):
    %more = arith.extf %one : bf16 to f32
    EXTRA linalg.yield RESULT : f32
} -> tensor<SHAPExf32>
// ----- BYTES
func.func @main(%a: tensor<4x6xi8>, %b: tensor<SHAPExi8>) -> tensor<4x5xWIDE> {
  %zero = arith.constant 0 : WIDE
  %a_e = tensor.empty() : tensor<4x6xWIDE>
  %a_w = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]
  } ins(%a : tensor<4x6xi8>) outs(%a_e : tensor<4x6xWIDE>) {
    ^bb0(%x: i8, %o: WIDE):
      %y = arith.extsi %x : i8 to WIDE
      linalg.yield %y : WIDE
  } -> tensor<4x6xWIDE>
  %b_e = tensor.empty() : tensor<SHAPExWIDE>
  %b_w = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]
  } ins(%b : tensor<SHAPExi8>) outs(%b_e : tensor<SHAPExWIDE>) {
    ^bb0(%x: i8, %o: WIDE):
      %y = EXTEND %x : i8 to WIDE
      linalg.yield %y : WIDE
  } -> tensor<SHAPExWIDE>
  TURN
  %e = tensor.empty() : tensor<4x5xWIDE>
  %zeros = linalg.fill ins(%zero : WIDE) outs(%e : tensor<4x5xWIDE>) -> tensor<4x5xWIDE>
  %r = linalg.matmul CAST ins(%a_w, RIGHT : tensor<4x6xWIDE>, tensor<6x5xWIDE>)
    outs(%zeros : tensor<4x5xWIDE>) -> tensor<4x5xWIDE>
  return %r : tensor<4x5xWIDE>
}
// ----- TURN
%t_e = tensor.empty() : tensor<6x5xi32>
%t = linalg.transpose ins(%b_w : tensor<5x6xi32>) outs(%t_e : tensor<6x5xi32>) permutation = [1, 0]
// ----- PRODUCT
func.func @main(%a: tensor<ROWSx6xbf16>, %b: tensor<6x5xTYPE>) -> tensor<4x5xf32> {
  %zero = arith.constant 0.0 : f32
  LEFT
  RIGHT
  CUT
  %e = tensor.empty() : tensor<4x5xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%e : tensor<4x5xf32>) -> tensor<4x5xf32>
  %r = linalg.matmul ins(OF_A, OF_B : tensor<4x6xf32>, tensor<6x5xf32>) outs(%zeros : tensor<4x5xf32>)
    -> tensor<4x5xf32>
  return %r : tensor<4x5xf32>
}
