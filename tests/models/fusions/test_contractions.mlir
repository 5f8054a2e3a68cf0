// ----- GENERIC
func.func @main(%a: A_TENSOR, %b: B_TENSOR, %c: RESULT) -> RESULT {
  %zero = arith.constant ZERO : ELEMENT
  %empty = tensor.empty() : RESULT
  %zeros = linalg.fill ins(%zero : ELEMENT) outs(%empty : RESULT) -> RESULT
  %r = linalg.generic {
    indexing_maps = [
      affine_map<(LOOPS) -> (A_LOOPS)>, affine_map<(LOOPS) -> (B_LOOPS)>, affine_map<(LOOPS) -> (C_LOOPS)>],
    iterator_types = [KINDS]
  } ins(%a, %b : A_TENSOR, B_TENSOR) outs(START : RESULT) {
    ^bb0(%x: A_ELEMENT, %y: B_ELEMENT, %before: ELEMENT):
      BODY
      linalg.yield %s : ELEMENT
  } -> RESULT
  return %r : RESULT
}
// ----- NAMED
func.func @main(%a: A_TENSOR, %b: B_TENSOR, %c: RESULT) -> RESULT {
  %zero = arith.constant ZERO : ELEMENT
  %empty = tensor.empty() : RESULT
  %zeros = linalg.fill ins(%zero : ELEMENT) outs(%empty : RESULT) -> RESULT
  %r = linalg.OPERATION indexing_maps = [
      affine_map<(LOOPS) -> (A_LOOPS)>, affine_map<(LOOPS) -> (B_LOOPS)>, affine_map<(LOOPS) -> (C_LOOPS)>]
    CAST ins(%a, %b : A_TENSOR, B_TENSOR) outs(START : RESULT) -> RESULT
  return %r : RESULT
}
