// ----- BARRIER
func.func @f(%a: memref<8xf32>) {
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c8, %sy = %c1, %sz = %c1) {
    %x = memref.load %a[%tx] : memref<8xf32>
    gpu.barrier
    memref.store %x, %a[%tx] : memref<8xf32>
    gpu.terminator
  }
  return
}
// ----- PRINT
func.func @f() {
  %c1 = arith.constant 1 : index %c2 = arith.constant 2 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
    threads(%tx, %ty, %tz) in (%sx = %c2, %sy = %c1, %sz = %c1) {
    %i = arith.index_cast %tx : index to i32
    gpu.printf "thread %d\n", %i : i32
    gpu.terminator
  }
  return
}
// ----- COPY
func.func @f(%a: memref<4xf32>, %b: memref<4xf32>) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c4, %sy = %c1, %sz = %c1) {
    %x = memref.load %a[%tx] : memref<4xf32>
    memref.store %x, %b[%tx] : memref<4xf32>
    gpu.terminator
  }
  return
}
// ----- BIG
func.func @f(%a: memref<32x256xf32>, %b: memref<32x256xf32>) {
  linalg.exp ins(%a : memref<32x256xf32>) outs(%b : memref<32x256xf32>)
  return
}
// ----- ROWS
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.consumed}) {
    %product = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
    %tile, %loops:3 = transform.structured.tile_using_for %product tile_sizes [4, 16, 4]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    transform.structured.vectorize %tile : !transform.any_op
    transform.yield
  }
}
