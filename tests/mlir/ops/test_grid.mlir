// ----- SPLIT_PAYLOAD

module {
  func.func @f(%c: memref<96xf32>, %any: index) {
    %zero = arith.constant 0.0 : f32
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c96 = arith.constant 96 : index
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c8, %gy = %c8, %gz = BLOCKS)
        threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
      BODY
      gpu.terminator
    }
    return
  }
}
// ----- PAYLOAD

module {
  func.func @f(%c: memref<2xindex>, %any: index) {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %columns = COLUMNS
    %rows = arith.constant ROWS : index
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %columns, %gy = %rows, %gz = %one)
        threads(%tx, %ty, %tz) in (%sx = %one, %sy = %one, %sz = %one) {
      %x = gpu.block_id x
      memref.store %x, %c[%zero] : memref<2xindex>
      memref.store %by, %c[%one] : memref<2xindex>
      gpu.terminator
    }
    return
  }
}
