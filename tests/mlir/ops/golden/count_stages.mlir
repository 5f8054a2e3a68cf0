module {
  func.func @f(%arg0: index, %arg1: f32) -> (f32, index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %0:2 = scf.for %arg2 = %c0 to %c64 step %c16 iter_args(%arg3 = %arg1, %arg4 = %c1) -> (f32, index) {
      %1 = arith.addi %arg2, %c32 : index
      %c0_i32 = arith.constant 0 : i32
      %c1_i32 = arith.constant 1 : i32
      %c3_i32 = arith.constant 3 : i32
      %2 = arith.index_castui %arg4 : index to i32
      %3 = arith.addi %2, %c1_i32 : i32
      %4 = arith.cmpi eq, %3, %c3_i32 : i32
      %5 = arith.select %4, %c0_i32, %3 : i32
      %6 = arith.index_castui %5 : i32 to index
      %7 = arith.index_castui %6 : index to i32
      %8 = arith.uitofp %7 : i32 to f32
      %9 = arith.addf %arg3, %8 : f32
      scf.yield %9, %6 : f32, index
    }
    return %0#0, %0#1 : f32, index
  }
}
