#map = affine_map<()[s0, s1] -> (s0 + s1 * 24)>
module {
  func.func @f(%arg0: memref<96xf32>, %arg1: index) {
    %cst = arith.constant 0.000000e+00 : f32
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c96 = arith.constant 96 : index
    %c4 = arith.constant 4 : index
    gpu.launch blocks(%arg2, %arg3, %arg4) in (%arg8 = %c8, %arg9 = %c8, %arg10 = %c4) threads(%arg5, %arg6, %arg7) in (%arg11 = %c1, %arg12 = %c1, %arg13 = %c1) {
      %block_id_z = gpu.block_id z
      %c24 = arith.constant 24 : index
      scf.for %arg14 = %c0 to %c24 step %c8 {
        %0 = affine.apply #map()[%arg14, %block_id_z]
        memref.store %cst, %arg0[%0] : memref<96xf32>
      }
      gpu.terminator
    }
    return
  }
}
