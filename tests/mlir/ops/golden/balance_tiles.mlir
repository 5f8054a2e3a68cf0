#map = affine_map<()[s0] -> (s0 mod 2)>
#map1 = affine_map<()[s0] -> (s0 floordiv 2 + 1)>
#map2 = affine_map<()[s0] -> (s0 floordiv 3)>
#map3 = affine_map<()[s0] -> (s0 mod 3)>
#map4 = affine_map<()[s0] -> (s0 * 32)>
module {
  func.func @f(%arg0: memref<3x64xf32>, %arg1: index, %arg2: f32) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %c8 = arith.constant 8 : index
    %c48 = arith.constant 48 : index
    %c64 = arith.constant 64 : index
    %c4 = arith.constant 4 : index
    %c1_0 = arith.constant 1 : index
    gpu.launch blocks(%arg3, %arg4, %arg5) in (%arg9 = %c4, %arg10 = %c1_0, %arg11 = %c1) threads(%arg6, %arg7, %arg8) in (%arg12 = %c1, %arg13 = %c1, %arg14 = %c1) {
      %block_id_x = gpu.block_id x
      %c2 = arith.constant 2 : index
      %0 = arith.cmpi slt, %block_id_x, %c2 : index
      %1 = affine.apply #map()[%block_id_x]
      %2 = affine.apply #map1()[%block_id_x]
      %3 = arith.select %0, %block_id_x, %2 : index
      %4 = affine.apply #map2()[%3]
      %5 = affine.apply #map3()[%3]
      %c1_1 = arith.constant 1 : index
      %6 = arith.subi %c1_1, %4 : index
      %c1_2 = arith.constant 1 : index
      %7 = arith.minui %6, %c1_2 : index
      %8 = arith.remui %5, %7 : index
      %9 = arith.addi %4, %8 : index
      %10 = arith.divui %5, %7 : index
      %c0_3 = arith.constant 0 : index
      %11 = affine.apply #map4()[%1]
      %12 = arith.select %0, %c0_3, %11 : index
      scf.for %arg15 = %c0 to %c64 step %c8 {
        %13 = arith.addi %arg15, %12 : index
        %14 = arith.cmpi slt, %13, %c48 : index
        scf.if %14 {
          memref.store %arg2, %arg0[%10, %13] : memref<3x64xf32>
        }
      }
      gpu.terminator
    } {tuner.tile_grid = array<i32: 3, 1>}
    return
  }
}
