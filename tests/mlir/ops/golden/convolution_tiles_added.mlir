module {
  func.func @f(%arg0: memref<1x24x3x16xi32>, %arg1: memref<3x3x16x24xi32>, %arg2: memref<1x16x1x14xf32>) {
    %cst = arith.constant 0.000000e+00 : f32
    %c0 = arith.constant 0 : index
    %c0_0 = arith.constant 0 : index
    %c0_1 = arith.constant 0 : index
    %c0_2 = arith.constant 0 : index
    %c0_3 = arith.constant 0 : index
    %0 = arith.addi %c0_3, %c0 : index
    %c0_4 = arith.constant 0 : index
    %1 = arith.addi %c0_4, %c0_2 : index
    %c0_5 = arith.constant 0 : index
    %2 = arith.addi %c0_5, %c0_0 : index
    %c0_6 = arith.constant 0 : index
    %3 = arith.addi %c0_6, %c0_1 : index
    %subview = memref.subview %arg2[%0, %1, %2, %3] [1, 16, 1, 14] [1, 1, 1, 1] : memref<1x16x1x14xf32> to memref<16x14xf32, strided<[14, 1], offset: ?>>
    %c0_7 = arith.constant 0 : index
    %c0_8 = arith.constant 0 : index
    %4 = x86.amx.tile_load %subview[%c0_7, %c0_8] : memref<16x14xf32, strided<[14, 1], offset: ?>> into !x86.amx.tile<16x14xf32>
    %c0_9 = arith.constant 0 : index
    %c3 = arith.constant 3 : index
    %c1 = arith.constant 1 : index
    %5 = scf.for %arg3 = %c0_9 to %c3 step %c1 iter_args(%arg4 = %4) -> (!x86.amx.tile<16x14xf32>) {
      %c0_21 = arith.constant 0 : index
      %c3_22 = arith.constant 3 : index
      %c1_23 = arith.constant 1 : index
      %10 = scf.for %arg5 = %c0_21 to %c3_22 step %c1_23 iter_args(%arg6 = %arg4) -> (!x86.amx.tile<16x14xf32>) {
        %c0_24 = arith.constant 0 : index
        %c2 = arith.constant 2 : index
        %c1_25 = arith.constant 1 : index
        %11 = scf.for %arg7 = %c0_24 to %c2 step %c1_25 iter_args(%arg8 = %arg6) -> (!x86.amx.tile<16x14xf32>) {
          %c12 = arith.constant 12 : index
          %12 = arith.muli %arg7, %c12 : index
          %c0_26 = arith.constant 0 : index
          %c0_27 = arith.constant 0 : index
          %13 = arith.addi %c0_27, %arg3 : index
          %c0_28 = arith.constant 0 : index
          %14 = arith.addi %c0_28, %arg5 : index
          %c0_29 = arith.constant 0 : index
          %15 = arith.addi %c0_29, %c0_26 : index
          %c0_30 = arith.constant 0 : index
          %16 = arith.addi %c0_30, %12 : index
          %subview_31 = memref.subview %arg1[%13, %14, %15, %16] [1, 1, 16, 12] [1, 1, 1, 1] : memref<3x3x16x24xi32> to memref<16x12xi32, strided<[24, 1], offset: ?>>
          %c0_32 = arith.constant 0 : index
          %c0_33 = arith.constant 0 : index
          %17 = x86.amx.tile_load %subview_31[%c0_32, %c0_33] : memref<16x12xi32, strided<[24, 1], offset: ?>> into !x86.amx.tile<16x24xbf16>
          %c0_34 = arith.constant 0 : index
          %c0_35 = arith.constant 0 : index
          %c0_36 = arith.constant 0 : index
          %c0_37 = arith.constant 0 : index
          %18 = arith.addi %c0_37, %c0_34 : index
          %c0_38 = arith.constant 0 : index
          %19 = arith.addi %c0_38, %12 : index
          %c0_39 = arith.constant 0 : index
          %20 = arith.addi %c0_39, %c0_35 : index
          %21 = arith.addi %20, %arg3 : index
          %c0_40 = arith.constant 0 : index
          %22 = arith.addi %c0_40, %c0_36 : index
          %23 = arith.addi %22, %arg5 : index
          %subview_41 = memref.subview %arg0[%18, %19, %21, %23] [1, 12, 1, 14] [1, 1, 1, 1] : memref<1x24x3x16xi32> to memref<12x14xi32, strided<[48, 1], offset: ?>>
          %c0_42 = arith.constant 0 : index
          %c0_43 = arith.constant 0 : index
          %24 = x86.amx.tile_load %subview_41[%c0_42, %c0_43] : memref<12x14xi32, strided<[48, 1], offset: ?>> into !x86.amx.tile<12x28xbf16>
          %25 = x86.amx.tile_mulf %17, %24, %arg8 : !x86.amx.tile<16x24xbf16>, !x86.amx.tile<12x28xbf16>, !x86.amx.tile<16x14xf32>
          scf.yield %25 : !x86.amx.tile<16x14xf32>
        }
        scf.yield %11 : !x86.amx.tile<16x14xf32>
      }
      scf.yield %10 : !x86.amx.tile<16x14xf32>
    }
    %c0_10 = arith.constant 0 : index
    %c0_11 = arith.constant 0 : index
    %c0_12 = arith.constant 0 : index
    %c0_13 = arith.constant 0 : index
    %c0_14 = arith.constant 0 : index
    %6 = arith.addi %c0_14, %c0_10 : index
    %c0_15 = arith.constant 0 : index
    %7 = arith.addi %c0_15, %c0_13 : index
    %c0_16 = arith.constant 0 : index
    %8 = arith.addi %c0_16, %c0_11 : index
    %c0_17 = arith.constant 0 : index
    %9 = arith.addi %c0_17, %c0_12 : index
    %subview_18 = memref.subview %arg2[%6, %7, %8, %9] [1, 16, 1, 14] [1, 1, 1, 1] : memref<1x16x1x14xf32> to memref<16x14xf32, strided<[14, 1], offset: ?>>
    %c0_19 = arith.constant 0 : index
    %c0_20 = arith.constant 0 : index
    x86.amx.tile_store %subview_18[%c0_19, %c0_20], %5 : memref<16x14xf32, strided<[14, 1], offset: ?>>, !x86.amx.tile<16x14xf32>
    return
  }
}
