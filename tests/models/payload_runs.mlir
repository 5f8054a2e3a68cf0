// ----- PAYLOAD
module attributes {gpu.container_module} {
  func.func private @printMemrefF32(memref<*xf32>)
  func.func @main(%a: memref<16xf32>, %b: memref<16xf32>MORE) -> (RESULTS) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %c16 = arith.constant 16 : index
    %one = arith.constant 1.0 : f32
    BODY
  }
KERNELS}
