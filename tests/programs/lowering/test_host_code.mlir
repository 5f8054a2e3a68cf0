// ----- CHOSEN
func.func @main(%a: memref<4xf32>, %b: memref<4xf32>, %c: i1) {
  %s = "gpux.create_stream"() : () -> !gpux.StreamType
  %t = "gpux.create_stream"() : () -> !gpux.StreamType
  %u = arith.select %c, %s, %t : !gpux.StreamType
  "gpux.memcpy"(%u, %b, %a) : (!gpux.StreamType, memref<4xf32>, memref<4xf32>) -> ()
  return
}
