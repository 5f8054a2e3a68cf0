module {
  func.func @f(%arg0: memref<1x24x3x16xi32>, %arg1: memref<3x3x16x24xi32>, %arg2: memref<1x16x1x14xf32>) {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = x86.amx.tile_zero : !x86.amx.tile<16x14xf32>
    %c0 = arith.constant 0 : index
    %c3 = arith.constant 3 : index
    %c1 = arith.constant 1 : index
    %1 = scf.for %arg3 = %c0 to %c3 step %c1 iter_args(%arg4 = %0) -> (!x86.amx.tile<16x14xf32>) {
      %c0_10 = arith.constant 0 : index
      %c3_11 = arith.constant 3 : index
      %c1_12 = arith.constant 1 : index
      %6 = scf.for %arg5 = %c0_10 to %c3_11 step %c1_12 iter_args(%arg6 = %arg4) -> (!x86.amx.tile<16x14xf32>) {
        %c0_13 = arith.constant 0 : index
        %c2 = arith.constant 2 : index
        %c1_14 = arith.constant 1 : index
        %7 = scf.for %arg7 = %c0_13 to %c2 step %c1_14 iter_args(%arg8 = %arg6) -> (!x86.amx.tile<16x14xf32>) {
          %c12 = arith.constant 12 : index
          %8 = arith.muli %arg7, %c12 : index
          %c0_15 = arith.constant 0 : index
          %c0_16 = arith.constant 0 : index
          %9 = arith.addi %c0_16, %arg3 : index
          %c0_17 = arith.constant 0 : index
          %10 = arith.addi %c0_17, %arg5 : index
          %c0_18 = arith.constant 0 : index
          %11 = arith.addi %c0_18, %c0_15 : index
          %c0_19 = arith.constant 0 : index
          %12 = arith.addi %c0_19, %8 : index
          %subview_20 = memref.subview %arg1[%9, %10, %11, %12] [1, 1, 16, 12] [1, 1, 1, 1] : memref<3x3x16x24xi32> to memref<16x12xi32, strided<[24, 1], offset: ?>>
          %c0_21 = arith.constant 0 : index
          %c0_22 = arith.constant 0 : index
          %13 = x86.amx.tile_load %subview_20[%c0_21, %c0_22] : memref<16x12xi32, strided<[24, 1], offset: ?>> into !x86.amx.tile<16x24xbf16>
          %c0_23 = arith.constant 0 : index
          %c0_24 = arith.constant 0 : index
          %c0_25 = arith.constant 0 : index
          %c0_26 = arith.constant 0 : index
          %14 = arith.addi %c0_26, %c0_23 : index
          %c0_27 = arith.constant 0 : index
          %15 = arith.addi %c0_27, %8 : index
          %c0_28 = arith.constant 0 : index
          %16 = arith.addi %c0_28, %c0_24 : index
          %17 = arith.addi %16, %arg3 : index
          %c0_29 = arith.constant 0 : index
          %18 = arith.addi %c0_29, %c0_25 : index
          %19 = arith.addi %18, %arg5 : index
          %subview_30 = memref.subview %arg0[%14, %15, %17, %19] [1, 12, 1, 14] [1, 1, 1, 1] : memref<1x24x3x16xi32> to memref<12x14xi32, strided<[48, 1], offset: ?>>
          %c0_31 = arith.constant 0 : index
          %c0_32 = arith.constant 0 : index
          %20 = x86.amx.tile_load %subview_30[%c0_31, %c0_32] : memref<12x14xi32, strided<[48, 1], offset: ?>> into !x86.amx.tile<12x28xbf16>
          %21 = x86.amx.tile_mulf %13, %20, %arg8 : !x86.amx.tile<16x24xbf16>, !x86.amx.tile<12x28xbf16>, !x86.amx.tile<16x14xf32>
          scf.yield %21 : !x86.amx.tile<16x14xf32>
        }
        scf.yield %7 : !x86.amx.tile<16x14xf32>
      }
      scf.yield %6 : !x86.amx.tile<16x14xf32>
    }
    %c0_0 = arith.constant 0 : index
    %c0_1 = arith.constant 0 : index
    %c0_2 = arith.constant 0 : index
    %c0_3 = arith.constant 0 : index
    %c0_4 = arith.constant 0 : index
    %2 = arith.addi %c0_4, %c0_0 : index
    %c0_5 = arith.constant 0 : index
    %3 = arith.addi %c0_5, %c0_3 : index
    %c0_6 = arith.constant 0 : index
    %4 = arith.addi %c0_6, %c0_1 : index
    %c0_7 = arith.constant 0 : index
    %5 = arith.addi %c0_7, %c0_2 : index
    %subview = memref.subview %arg2[%2, %3, %4, %5] [1, 16, 1, 14] [1, 1, 1, 1] : memref<1x16x1x14xf32> to memref<16x14xf32, strided<[14, 1], offset: ?>>
    %c0_8 = arith.constant 0 : index
    %c0_9 = arith.constant 0 : index
    x86.amx.tile_store %subview[%c0_8, %c0_9], %1 : memref<16x14xf32, strided<[14, 1], offset: ?>>, !x86.amx.tile<16x14xf32>
    return
  }
}
