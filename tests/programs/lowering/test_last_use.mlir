// ----- TWO_STREAMS
func.func @f(%a: memref<4xf32>) {
  %s = "gpux.create_stream"() : () -> !gpux.StreamType
  %t = "gpux.create_stream"() : () -> !gpux.StreamType
  %d = "gpux.alloc"(%s) : (!gpux.StreamType) -> memref<4xf32>
  "gpux.memcpy"(%t, %d, %a) : (!gpux.StreamType, memref<4xf32>, memref<4xf32>) -> ()
  return
}
// ----- SIZE_OF_THE_BRANCH
func.func @f(%a: memref<?xf32>, %flag: i1, %n: index) {
  %c1 = arith.constant 1 : index
  %r = scf.if %flag -> (memref<?xf32>) {
    %m = arith.addi %n, %c1 : index
    %x = gpu.alloc (%m) : memref<?xf32>
    scf.yield %x : memref<?xf32>
  } else {
    scf.yield %a : memref<?xf32>
  }
  gpu.memcpy %a, %r : memref<?xf32>, memref<?xf32>
  return
}
