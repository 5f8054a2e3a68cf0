module {
  func.func @f(%arg0: memref<3x64xf32>, %arg1: index, %arg2: f32) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %c8 = arith.constant 8 : index
    %c48 = arith.constant 48 : index
    %c64 = arith.constant 64 : index
    gpu.launch blocks(%arg3, %arg4, %arg5) in (%arg9 = %c3, %arg10 = %c1, %arg11 = %c1) threads(%arg6, %arg7, %arg8) in (%arg12 = %c1, %arg13 = %c1, %arg14 = %c1) {
      %block_id_x = gpu.block_id x
      %block_id_x_0 = gpu.block_id x
      %c2 = arith.constant 2 : index
      %0 = arith.cmpi slt, %block_id_x_0, %c2 : index
      %c64_1 = arith.constant 64 : index
      %c32 = arith.constant 32 : index
      %1 = arith.select %0, %c64_1, %c32 : index
      %c16 = arith.constant 16 : index
      %2 = arith.subi %1, %c16 : index
      scf.for %arg15 = %c0 to %1 step %c8 {
        %3 = arith.cmpi slt, %arg15, %2 : index
        scf.if %3 {
          memref.store %arg2, %arg0[%block_id_x, %arg15] : memref<3x64xf32>
        }
      }
      gpu.terminator
    }
    return
  }
}
