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
