// ----- WITH_MEMORY

func.func @group(%number: i64) {
  %zero = arith.constant 0 : i64
  %limit = arith.constant 9 : i64
  %memory = memref.alloc() : memref<512xi8>
  %is_less = arith.cmpi slt, %number, %limit : i64
  cf.assert %is_less, "too large"
  memref.dealloc %memory : memref<512xi8>
  %is_more = arith.cmpi sge, %number, %zero : i64
  cf.assert %is_more, "too small"
  return
}
// ----- IN_LOOP

func.func @group(%is_right: i1) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %nine = arith.constant 9 : index
  scf.for %i = %zero to %nine step %one {
    %memory = memref.alloc() : memref<512xi8>
    cf.assert %is_right, "wrong"
    memref.dealloc %memory : memref<512xi8>
  }
  return
}
// ----- IN_ANOTHER

func.func @called(%is_right: i1) {
  cf.assert %is_right, "wrong"
  return
}
func.func @group(%is_right: i1) {
  func.call @called(%is_right) : (i1) -> ()
  return
}
