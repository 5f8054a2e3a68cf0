// ----- PAYLOAD

module {
  func.func @f(%m: memref<8xf32>) {
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %c1 = arith.constant 1 : index
    %z = arith.constant 0.0 : f32
    scf.for %i = %c0 to %c8 step %c1 {
      memref.store %z, %m[%i] : memref<8xf32>
    }
    return
  }
}
