// ----- MODULE
func.func @main(%a: memref<16xf32>, %b: memref<16xf32>, %c: memref<16xf32>, %flag: i1, %n: index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    BODY
    return
  }
