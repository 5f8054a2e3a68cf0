// ----- MATMUL
func.func @f(%a: OF_A, %b: OF_B, %c: OF_C) {
      %zero = arith.constant 0.0 : RESULT
      FILL
      linalg.matmul ins(%a, %b : OF_A, OF_B) outs(%c : OF_C)
      return
    }
// ----- VIEWS
func.func @main(%a: WHOLE, %b: SQUARE, %c: SQUARE, %d: SQUARE, %flag: i1) {
      %c1 = arith.constant 1 : index
      %zero = arith.constant 0.0 : f32
      %one = arith.constant 1.0 : f32
      BODY
      return
    }
