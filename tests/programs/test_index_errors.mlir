// ----- IN_LOOP
func.func @main(%n: index) -> memref<4xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %limit = arith.constant 5 : index
  %made = memref.alloc() : memref<4xf32>
  scf.for %i = %zero to %n step %one {
    %memory = memref.alloc(%n) : memref<?xf32>
    %is_less = arith.cmpi slt, %i, %limit : index
    cf.assert %is_less, "too many"
    %x = arith.constant 1.0 : f32
    memref.store %x, %memory[%i] : memref<?xf32>
    memref.dealloc %memory : memref<?xf32>
  }
  %full = arith.constant 1.0 : f32
  linalg.fill ins(%full : f32) outs(%made : memref<4xf32>)
  return %made : memref<4xf32>
}
// ----- IN_ANOTHER
func.func private @require(%i: index) {
  %limit = arith.constant 5 : index
  %is_less = arith.cmpi slt, %i, %limit : index
  cf.cond_br %is_less, ^fine, ^wrong
^wrong:
  cf.assert %is_less, "too many"
  cf.br ^fine
^fine:
  return
}
func.func @main(%n: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  scf.for %i = %zero to %n step %one {
    func.call @require(%i) : (index) -> ()
  }
  return
}
