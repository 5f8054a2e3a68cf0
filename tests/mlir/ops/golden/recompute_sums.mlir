#loop_unroll = #llvm.loop_unroll<disable = true>
#loop_annotation = #llvm.loop_annotation<unroll = #loop_unroll>
module {
  func.func @f(%arg0: memref<64x32xf32> {tuner.buffer = "a"}, %arg1: memref<32x64xf32> {tuner.buffer = "b"}, %arg2: memref<64x64xf32>, %arg3: memref<64x64xf32>, %arg4: index, %arg5: index, %arg6: i1, %arg7: vector<2xf32>) {
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c32 = arith.constant 32 : index
    gpu.launch blocks(%arg8, %arg9, %arg10) in (%arg14 = %c2, %arg15 = %c2, %arg16 = %c2) threads(%arg11, %arg12, %arg13) in (%arg17 = %c32, %arg18 = %c1, %arg19 = %c1) {
      %0 = vector.extract %arg7[0] : f32 from vector<2xf32>
      %1 = vector.extract %arg7[1] : f32 from vector<2xf32>
      %cst = arith.constant 0.000000e+00 : f32
      %cst_0 = arith.constant 0.000000e+00 : f32
      %2 = math.fma %0, %cst_0, %cst : f32
      %cst_1 = arith.constant 0.000000e+00 : f32
      %3 = math.fma %1, %cst_1, %cst : f32
      %4 = arith.addf %2, %3 : f32
      %5 = arith.cmpf uno, %4, %4 : f32
      %c-1_i32 = arith.constant -1 : i32
      %6 = nvvm.vote.sync any %c-1_i32, %5 -> i1
      %7:2 = scf.if %6 -> (f32, f32) {
        %c32_2 = arith.constant 32 : index
        %c0 = arith.constant 0 : index
        %cst_3 = arith.constant 0.000000e+00 : f32
        %c1_4 = arith.constant 1 : index
        %9:2 = scf.for %arg20 = %c0 to %c32_2 step %c1_4 iter_args(%arg21 = %cst_3, %arg22 = %cst_3) -> (f32, f32) {
          %10 = memref.load %arg0[%arg4, %arg20] : memref<64x32xf32>
          %11 = memref.load %arg1[%arg20, %arg5] : memref<32x64xf32>
          %c1_5 = arith.constant 1 : index
          %12 = arith.addi %arg5, %c1_5 : index
          %13 = memref.load %arg1[%arg20, %12] : memref<32x64xf32>
          %14 = math.fma %10, %11, %arg21 : f32
          %15 = math.fma %10, %13, %arg22 : f32
          scf.yield %14, %15 : f32, f32
        } {llvm.loop_annotation = #loop_annotation}
        scf.yield %9#0, %9#1 : f32, f32
      } else {
        scf.yield %0, %1 : f32, f32
      }
      %8 = vector.from_elements %7#0, %7#1 : vector<2xf32>
      vector.store %8, %arg3[%arg4, %arg5] : memref<64x64xf32>, vector<2xf32>
      gpu.terminator
    }
    return
  }
}
