#map = affine_map<()[s0, s1, s2, s3, s4] -> (((s3 + s4 * 2) * 4 + s0 floordiv 32 + s1 * 4 + s2 * 4) * 4)>
module {
  func.func @f(%arg0: memref<3x8x64xf32> {tuner.buffer = "parts"}, %arg1: memref<16xi32> {tuner.buffer = "zeroed"}, %arg2: memref<8x64xf32>, %arg3: memref<8x64xf32>, %arg4: index, %arg5: index, %arg6: i1, %arg7: vector<2xf32>) {
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c128 = arith.constant 128 : index
    gpu.launch blocks(%arg8, %arg9, %arg10) in (%arg14 = %c2, %arg15 = %c2, %arg16 = %c3) threads(%arg11, %arg12, %arg13) in (%arg17 = %c128, %arg18 = %c1, %arg19 = %c1) {
      %block_id_z = gpu.block_id z
      vector.store %arg7, %arg0[%block_id_z, %arg4, %arg5] : memref<3x8x64xf32>, vector<2xf32>
      %0 = gpu.lane_id
      %c0 = arith.constant 0 : index
      %1 = arith.cmpi eq, %0, %c0 : index
      %thread_id_x = gpu.thread_id x
      %thread_id_y = gpu.thread_id y
      %thread_id_z = gpu.thread_id z
      %block_id_x = gpu.block_id x
      %block_id_y = gpu.block_id y
      %2 = affine.apply #map()[%thread_id_x, %thread_id_y, %thread_id_z, %block_id_x, %block_id_y]
      %intptr = memref.extract_aligned_pointer_as_index %arg1 : memref<16xi32> -> index
      %3 = arith.addi %intptr, %2 : index
      %4 = arith.index_cast %3 : index to i64
      %c-1_i32 = arith.constant -1 : i32
      nvvm.bar.warp.sync %c-1_i32 : i32
      %5 = scf.if %1 -> (i32) {
        %7 = llvm.inline_asm has_side_effects asm_dialect = att "atom.acq_rel.gpu.global.add.u32 $0, [$1], 1;", "=r,l,~{memory}" %4 : (i64) -> i32
        scf.yield %7 : i32
      } else {
        %c0_i32_1 = arith.constant 0 : i32
        scf.yield %c0_i32_1 : i32
      }
      %c0_i32 = arith.constant 0 : i32
      %c32_i32 = arith.constant 32 : i32
      %shuffleResult, %valid = gpu.shuffle idx %5, %c0_i32, %c32_i32 : i32
      %c-1_i32_0 = arith.constant -1 : i32
      nvvm.bar.warp.sync %c-1_i32_0 : i32
      %c2_i32 = arith.constant 2 : i32
      %6 = arith.cmpi eq, %shuffleResult, %c2_i32 : i32
      scf.if %6 {
        %c0_1 = arith.constant 0 : index
        %7 = vector.load %arg0[%c0_1, %arg4, %arg5] : memref<3x8x64xf32>, vector<2xf32>
        %c1_2 = arith.constant 1 : index
        %8 = vector.load %arg0[%c1_2, %arg4, %arg5] : memref<3x8x64xf32>, vector<2xf32>
        %9 = arith.addf %7, %8 : vector<2xf32>
        %c2_3 = arith.constant 2 : index
        %10 = vector.load %arg0[%c2_3, %arg4, %arg5] : memref<3x8x64xf32>, vector<2xf32>
        %11 = arith.addf %9, %10 : vector<2xf32>
        vector.store %11, %arg3[%arg4, %arg5] : memref<8x64xf32>, vector<2xf32>
        scf.if %1 {
          llvm.inline_asm has_side_effects asm_dialect = att "st.relaxed.gpu.global.u32 [$0], 0;", "l,~{memory}" %4 : (i64) -> ()
        }
      }
      gpu.terminator
    }
    return
  }
}
