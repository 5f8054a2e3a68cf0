module {
  func.func @f(%arg0: memref<1x24x3x20xi32>, %arg1: memref<3x3x20x24xi32>, %arg2: memref<1x20x1x18xf32>) {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = x86.amx.tile_zero : !x86.amx.tile<16x16xf32>
    %1 = x86.amx.tile_zero : !x86.amx.tile<16x2xf32>
    %2 = x86.amx.tile_zero : !x86.amx.tile<4x16xf32>
    %3 = x86.amx.tile_zero : !x86.amx.tile<4x2xf32>
    %c0 = arith.constant 0 : index
    %c3 = arith.constant 3 : index
    %c1 = arith.constant 1 : index
    %4:4 = scf.for %arg3 = %c0 to %c3 step %c1 iter_args(%arg4 = %0, %arg5 = %1, %arg6 = %2, %arg7 = %3) -> (!x86.amx.tile<16x16xf32>, !x86.amx.tile<16x2xf32>, !x86.amx.tile<4x16xf32>, !x86.amx.tile<4x2xf32>) {
      %c0_42 = arith.constant 0 : index
      %c3_43 = arith.constant 3 : index
      %c1_44 = arith.constant 1 : index
      %21:4 = scf.for %arg8 = %c0_42 to %c3_43 step %c1_44 iter_args(%arg9 = %arg4, %arg10 = %arg5, %arg11 = %arg6, %arg12 = %arg7) -> (!x86.amx.tile<16x16xf32>, !x86.amx.tile<16x2xf32>, !x86.amx.tile<4x16xf32>, !x86.amx.tile<4x2xf32>) {
        %c0_45 = arith.constant 0 : index
        %c2 = arith.constant 2 : index
        %c1_46 = arith.constant 1 : index
        %22:4 = scf.for %arg13 = %c0_45 to %c2 step %c1_46 iter_args(%arg14 = %arg9, %arg15 = %arg10, %arg16 = %arg11, %arg17 = %arg12) -> (!x86.amx.tile<16x16xf32>, !x86.amx.tile<16x2xf32>, !x86.amx.tile<4x16xf32>, !x86.amx.tile<4x2xf32>) {
          %c12 = arith.constant 12 : index
          %23 = arith.muli %arg13, %c12 : index
          %c0_47 = arith.constant 0 : index
          %c0_48 = arith.constant 0 : index
          %24 = arith.addi %c0_48, %arg3 : index
          %c0_49 = arith.constant 0 : index
          %25 = arith.addi %c0_49, %arg8 : index
          %c0_50 = arith.constant 0 : index
          %26 = arith.addi %c0_50, %c0_47 : index
          %c0_51 = arith.constant 0 : index
          %27 = arith.addi %c0_51, %23 : index
          %subview_52 = memref.subview %arg1[%24, %25, %26, %27] [1, 1, 16, 12] [1, 1, 1, 1] : memref<3x3x20x24xi32> to memref<16x12xi32, strided<[24, 1], offset: ?>>
          %c0_53 = arith.constant 0 : index
          %c0_54 = arith.constant 0 : index
          %28 = x86.amx.tile_load %subview_52[%c0_53, %c0_54] : memref<16x12xi32, strided<[24, 1], offset: ?>> into !x86.amx.tile<16x24xbf16>
          %c0_55 = arith.constant 0 : index
          %c0_56 = arith.constant 0 : index
          %c0_57 = arith.constant 0 : index
          %c0_58 = arith.constant 0 : index
          %29 = arith.addi %c0_58, %c0_55 : index
          %c0_59 = arith.constant 0 : index
          %30 = arith.addi %c0_59, %23 : index
          %c0_60 = arith.constant 0 : index
          %31 = arith.addi %c0_60, %c0_56 : index
          %32 = arith.addi %31, %arg3 : index
          %c0_61 = arith.constant 0 : index
          %33 = arith.addi %c0_61, %c0_57 : index
          %34 = arith.addi %33, %arg8 : index
          %subview_62 = memref.subview %arg0[%29, %30, %32, %34] [1, 12, 1, 16] [1, 1, 1, 1] : memref<1x24x3x20xi32> to memref<12x16xi32, strided<[60, 1], offset: ?>>
          %c0_63 = arith.constant 0 : index
          %c0_64 = arith.constant 0 : index
          %35 = x86.amx.tile_load %subview_62[%c0_63, %c0_64] : memref<12x16xi32, strided<[60, 1], offset: ?>> into !x86.amx.tile<12x32xbf16>
          %36 = x86.amx.tile_mulf %28, %35, %arg14 : !x86.amx.tile<16x24xbf16>, !x86.amx.tile<12x32xbf16>, !x86.amx.tile<16x16xf32>
          %c16_65 = arith.constant 16 : index
          %c0_66 = arith.constant 0 : index
          %37 = arith.addi %c0_66, %arg3 : index
          %c0_67 = arith.constant 0 : index
          %38 = arith.addi %c0_67, %arg8 : index
          %c0_68 = arith.constant 0 : index
          %39 = arith.addi %c0_68, %c16_65 : index
          %c0_69 = arith.constant 0 : index
          %40 = arith.addi %c0_69, %23 : index
          %subview_70 = memref.subview %arg1[%37, %38, %39, %40] [1, 1, 4, 12] [1, 1, 1, 1] : memref<3x3x20x24xi32> to memref<4x12xi32, strided<[24, 1], offset: ?>>
          %c0_71 = arith.constant 0 : index
          %c0_72 = arith.constant 0 : index
          %41 = x86.amx.tile_load %subview_70[%c0_71, %c0_72] : memref<4x12xi32, strided<[24, 1], offset: ?>> into !x86.amx.tile<4x24xbf16>
          %42 = x86.amx.tile_mulf %41, %35, %arg16 : !x86.amx.tile<4x24xbf16>, !x86.amx.tile<12x32xbf16>, !x86.amx.tile<4x16xf32>
          %c0_73 = arith.constant 0 : index
          %c0_74 = arith.constant 0 : index
          %c16_75 = arith.constant 16 : index
          %c0_76 = arith.constant 0 : index
          %43 = arith.addi %c0_76, %c0_73 : index
          %c0_77 = arith.constant 0 : index
          %44 = arith.addi %c0_77, %23 : index
          %c0_78 = arith.constant 0 : index
          %45 = arith.addi %c0_78, %c0_74 : index
          %46 = arith.addi %45, %arg3 : index
          %c0_79 = arith.constant 0 : index
          %47 = arith.addi %c0_79, %c16_75 : index
          %48 = arith.addi %47, %arg8 : index
          %subview_80 = memref.subview %arg0[%43, %44, %46, %48] [1, 12, 1, 2] [1, 1, 1, 1] : memref<1x24x3x20xi32> to memref<12x2xi32, strided<[60, 1], offset: ?>>
          %c0_81 = arith.constant 0 : index
          %c0_82 = arith.constant 0 : index
          %49 = x86.amx.tile_load %subview_80[%c0_81, %c0_82] : memref<12x2xi32, strided<[60, 1], offset: ?>> into !x86.amx.tile<12x4xbf16>
          %50 = x86.amx.tile_mulf %28, %49, %arg15 : !x86.amx.tile<16x24xbf16>, !x86.amx.tile<12x4xbf16>, !x86.amx.tile<16x2xf32>
          %51 = x86.amx.tile_mulf %41, %49, %arg17 : !x86.amx.tile<4x24xbf16>, !x86.amx.tile<12x4xbf16>, !x86.amx.tile<4x2xf32>
          scf.yield %36, %50, %42, %51 : !x86.amx.tile<16x16xf32>, !x86.amx.tile<16x2xf32>, !x86.amx.tile<4x16xf32>, !x86.amx.tile<4x2xf32>
        }
        scf.yield %22#0, %22#1, %22#2, %22#3 : !x86.amx.tile<16x16xf32>, !x86.amx.tile<16x2xf32>, !x86.amx.tile<4x16xf32>, !x86.amx.tile<4x2xf32>
      }
      scf.yield %21#0, %21#1, %21#2, %21#3 : !x86.amx.tile<16x16xf32>, !x86.amx.tile<16x2xf32>, !x86.amx.tile<4x16xf32>, !x86.amx.tile<4x2xf32>
    }
    %c0_0 = arith.constant 0 : index
    %c0_1 = arith.constant 0 : index
    %c0_2 = arith.constant 0 : index
    %c0_3 = arith.constant 0 : index
    %c0_4 = arith.constant 0 : index
    %5 = arith.addi %c0_4, %c0_0 : index
    %c0_5 = arith.constant 0 : index
    %6 = arith.addi %c0_5, %c0_3 : index
    %c0_6 = arith.constant 0 : index
    %7 = arith.addi %c0_6, %c0_1 : index
    %c0_7 = arith.constant 0 : index
    %8 = arith.addi %c0_7, %c0_2 : index
    %subview = memref.subview %arg2[%5, %6, %7, %8] [1, 16, 1, 16] [1, 1, 1, 1] : memref<1x20x1x18xf32> to memref<16x16xf32, strided<[18, 1], offset: ?>>
    %c0_8 = arith.constant 0 : index
    %c0_9 = arith.constant 0 : index
    x86.amx.tile_store %subview[%c0_8, %c0_9], %4#0 : memref<16x16xf32, strided<[18, 1], offset: ?>>, !x86.amx.tile<16x16xf32>
    %c0_10 = arith.constant 0 : index
    %c0_11 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %c0_12 = arith.constant 0 : index
    %c0_13 = arith.constant 0 : index
    %9 = arith.addi %c0_13, %c0_10 : index
    %c0_14 = arith.constant 0 : index
    %10 = arith.addi %c0_14, %c0_12 : index
    %c0_15 = arith.constant 0 : index
    %11 = arith.addi %c0_15, %c0_11 : index
    %c0_16 = arith.constant 0 : index
    %12 = arith.addi %c0_16, %c16 : index
    %subview_17 = memref.subview %arg2[%9, %10, %11, %12] [1, 16, 1, 2] [1, 1, 1, 1] : memref<1x20x1x18xf32> to memref<16x2xf32, strided<[18, 1], offset: ?>>
    %c0_18 = arith.constant 0 : index
    %c0_19 = arith.constant 0 : index
    x86.amx.tile_store %subview_17[%c0_18, %c0_19], %4#1 : memref<16x2xf32, strided<[18, 1], offset: ?>>, !x86.amx.tile<16x2xf32>
    %c0_20 = arith.constant 0 : index
    %c0_21 = arith.constant 0 : index
    %c0_22 = arith.constant 0 : index
    %c16_23 = arith.constant 16 : index
    %c0_24 = arith.constant 0 : index
    %13 = arith.addi %c0_24, %c0_20 : index
    %c0_25 = arith.constant 0 : index
    %14 = arith.addi %c0_25, %c16_23 : index
    %c0_26 = arith.constant 0 : index
    %15 = arith.addi %c0_26, %c0_21 : index
    %c0_27 = arith.constant 0 : index
    %16 = arith.addi %c0_27, %c0_22 : index
    %subview_28 = memref.subview %arg2[%13, %14, %15, %16] [1, 4, 1, 16] [1, 1, 1, 1] : memref<1x20x1x18xf32> to memref<4x16xf32, strided<[18, 1], offset: ?>>
    %c0_29 = arith.constant 0 : index
    %c0_30 = arith.constant 0 : index
    x86.amx.tile_store %subview_28[%c0_29, %c0_30], %4#2 : memref<4x16xf32, strided<[18, 1], offset: ?>>, !x86.amx.tile<4x16xf32>
    %c0_31 = arith.constant 0 : index
    %c0_32 = arith.constant 0 : index
    %c16_33 = arith.constant 16 : index
    %c16_34 = arith.constant 16 : index
    %c0_35 = arith.constant 0 : index
    %17 = arith.addi %c0_35, %c0_31 : index
    %c0_36 = arith.constant 0 : index
    %18 = arith.addi %c0_36, %c16_34 : index
    %c0_37 = arith.constant 0 : index
    %19 = arith.addi %c0_37, %c0_32 : index
    %c0_38 = arith.constant 0 : index
    %20 = arith.addi %c0_38, %c16_33 : index
    %subview_39 = memref.subview %arg2[%17, %18, %19, %20] [1, 4, 1, 2] [1, 1, 1, 1] : memref<1x20x1x18xf32> to memref<4x2xf32, strided<[18, 1], offset: ?>>
    %c0_40 = arith.constant 0 : index
    %c0_41 = arith.constant 0 : index
    x86.amx.tile_store %subview_39[%c0_40, %c0_41], %4#3 : memref<4x2xf32, strided<[18, 1], offset: ?>>, !x86.amx.tile<4x2xf32>
    return
  }
}
