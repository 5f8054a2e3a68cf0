module {
  func.func @f(%arg0: memref<16x64xbf16>, %arg1: memref<64x16xbf16>, %arg2: memref<16x16xf32>) {
    %cst = arith.constant 0.000000e+00 : f32
    %alloc = memref.alloc() {alignment = 64 : i64} : memref<32x32xbf16>
    %alloc_0 = memref.alloc() {alignment = 64 : i64} : memref<32x32xbf16>
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %c1 = arith.constant 1 : index
    scf.for %arg3 = %c0 to %c2 step %c1 {
      %c0_4 = arith.constant 0 : index
      %c1_5 = arith.constant 1 : index
      %c1_6 = arith.constant 1 : index
      scf.for %arg4 = %c0_4 to %c1_5 step %c1_6 {
        %c16 = arith.constant 16 : index
        %0 = arith.muli %arg4, %c16 : index
        %c32 = arith.constant 32 : index
        %1 = arith.muli %arg3, %c32 : index
        %c0_7 = arith.constant 0 : index
        %c16_8 = arith.constant 16 : index
        %c1_9 = arith.constant 1 : index
        scf.for %arg5 = %c0_7 to %c16_8 step %c1_9 {
          %c2_10 = arith.constant 2 : index
          %2 = arith.muli %arg5, %c2_10 : index
          %3 = arith.addi %1, %2 : index
          %4 = vector.load %arg1[%3, %0] : memref<64x16xbf16>, vector<16xbf16>
          %c1_11 = arith.constant 1 : index
          %5 = arith.addi %3, %c1_11 : index
          %6 = vector.load %arg1[%5, %0] : memref<64x16xbf16>, vector<16xbf16>
          %7 = vector.interleave %4, %6 : vector<16xbf16> -> vector<32xbf16>
          %c0_12 = arith.constant 0 : index
          %c2_13 = arith.constant 2 : index
          %8 = arith.muli %arg4, %c2_13 : index
          %9 = arith.addi %8, %arg3 : index
          %c16_14 = arith.constant 16 : index
          %10 = arith.muli %9, %c16_14 : index
          %c16_15 = arith.constant 16 : index
          %11 = arith.muli %c0_12, %c16_15 : index
          %12 = arith.addi %10, %11 : index
          %13 = arith.addi %12, %arg5 : index
          %c0_16 = arith.constant 0 : index
          vector.store %7, %alloc[%13, %c0_16] : memref<32x32xbf16>, vector<32xbf16>
        }
      }
    }
    %c0_1 = arith.constant 0 : index
    %c1_2 = arith.constant 1 : index
    %c1_3 = arith.constant 1 : index
    scf.for %arg3 = %c0_1 to %c1_2 step %c1_3 {
      %c16 = arith.constant 16 : index
      %0 = arith.muli %arg3, %c16 : index
      %c0_4 = arith.constant 0 : index
      %c16_5 = arith.constant 16 : index
      %c1_6 = arith.constant 1 : index
      scf.for %arg4 = %c0_4 to %c16_5 step %c1_6 {
        %c0_10 = arith.constant 0 : index
        %c2_11 = arith.constant 2 : index
        %c1_12 = arith.constant 1 : index
        scf.for %arg5 = %c0_10 to %c2_11 step %c1_12 {
          %1 = arith.addi %0, %arg4 : index
          %c32 = arith.constant 32 : index
          %2 = arith.muli %arg5, %c32 : index
          %3 = vector.load %arg0[%1, %2] : memref<16x64xbf16>, vector<32xbf16>
          %c0_13 = arith.constant 0 : index
          %c2_14 = arith.constant 2 : index
          %4 = arith.muli %c0_13, %c2_14 : index
          %5 = arith.addi %4, %arg5 : index
          %c16_15 = arith.constant 16 : index
          %6 = arith.muli %5, %c16_15 : index
          %7 = arith.addi %6, %arg4 : index
          %c0_16 = arith.constant 0 : index
          vector.store %3, %alloc_0[%7, %c0_16] : memref<32x32xbf16>, vector<32xbf16>
        }
      }
      %c0_7 = arith.constant 0 : index
      %c1_8 = arith.constant 1 : index
      %c1_9 = arith.constant 1 : index
      scf.for %arg4 = %c0_7 to %c1_8 step %c1_9 {
        %c16_10 = arith.constant 16 : index
        %1 = arith.muli %arg4, %c16_10 : index
        %2 = x86.amx.tile_zero : !x86.amx.tile<16x16xf32>
        %c0_11 = arith.constant 0 : index
        %c2_12 = arith.constant 2 : index
        %c1_13 = arith.constant 1 : index
        %3 = scf.for %arg5 = %c0_11 to %c2_12 step %c1_13 iter_args(%arg6 = %2) -> (!x86.amx.tile<16x16xf32>) {
          %c0_14 = arith.constant 0 : index
          %c2_15 = arith.constant 2 : index
          %4 = arith.muli %c0_14, %c2_15 : index
          %5 = arith.addi %4, %arg5 : index
          %c16_16 = arith.constant 16 : index
          %6 = arith.muli %5, %c16_16 : index
          %c0_17 = arith.constant 0 : index
          %7 = x86.amx.tile_load %alloc_0[%6, %c0_17] : memref<32x32xbf16> into !x86.amx.tile<16x32xbf16>
          %c2_18 = arith.constant 2 : index
          %8 = arith.muli %arg4, %c2_18 : index
          %9 = arith.addi %8, %arg5 : index
          %c16_19 = arith.constant 16 : index
          %10 = arith.muli %9, %c16_19 : index
          %c0_20 = arith.constant 0 : index
          %11 = x86.amx.tile_load %alloc[%10, %c0_20] : memref<32x32xbf16> into !x86.amx.tile<16x32xbf16>
          %12 = x86.amx.tile_mulf %7, %11, %arg6 : !x86.amx.tile<16x32xbf16>, !x86.amx.tile<16x32xbf16>, !x86.amx.tile<16x16xf32>
          scf.yield %12 : !x86.amx.tile<16x16xf32>
        }
        x86.amx.tile_store %arg2[%0, %1], %3 : memref<16x16xf32>, !x86.amx.tile<16x16xf32>
      }
    }
    return
  }
}
