// ----- PAYLOAD

module {
  func.func @f(%any: index, %zero: f32) -> (f32, index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %sums:2 = scf.for %k = {low} to %c64 step %c16 iter_args(%sum = %zero, %filled = {first})
        -> (f32, index) {
      %later = arith.addi %k, {ahead} : index
      %stage = affine.apply affine_map<(d0) -> ((d0 floordiv 16) mod {stages})>(%later)
      %read = arith.index_castui %stage : index to i32
      %more = arith.uitofp %read : i32 to f32
      %next = arith.addf %sum, %more : f32
      scf.yield %next, %stage : f32, index
    }
    return %sums#0, %sums#1 : f32, index
  }
}
