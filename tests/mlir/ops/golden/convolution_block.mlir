module {
  func.func @f(%arg0: memref<1x3x6x6xf32>, %arg1: memref<2x3x3x3x16xf32> {tuner.order = array<i64: 0, 1, 2, 3>, tuner.packing = 16 : i64, tuner.weight}, %arg2: memref<1x32x4x4xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c32 = arith.constant 32 : index
    %c16 = arith.constant 16 : index
    %cst = arith.constant 0.000000e+00 : f32
    %alloc = memref.alloc() : memref<1x16x1x4xf32>
    scf.for %arg3 = %c0 to %c32 step %c16 {
      scf.for %arg4 = %c0 to %c4 step %c1 {
        %subview = memref.subview %arg0[0, 0, %arg4, 0] [1, 3, 3, 6] [1, 1, 1, 1] : memref<1x3x6x6xf32> to memref<1x3x3x6xf32, strided<[108, 36, 6, 1], offset: ?>>
        %c16_0 = arith.constant 16 : index
        %0 = arith.divui %arg3, %c16_0 : index
        %cst_1 = arith.constant dense<0.000000e+00> : vector<16xf32>
        %c0_2 = arith.constant 0 : index
        %c3 = arith.constant 3 : index
        %c1_3 = arith.constant 1 : index
        %1:4 = scf.for %arg5 = %c0_2 to %c3 step %c1_3 iter_args(%arg6 = %cst_1, %arg7 = %cst_1, %arg8 = %cst_1, %arg9 = %cst_1) -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) {
          %c0_90 = arith.constant 0 : index
          %c3_91 = arith.constant 3 : index
          %c1_92 = arith.constant 1 : index
          %39:4 = scf.for %arg10 = %c0_90 to %c3_91 step %c1_92 iter_args(%arg11 = %arg6, %arg12 = %arg7, %arg13 = %arg8, %arg14 = %arg9) -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) {
            %c0_93 = arith.constant 0 : index
            %c3_94 = arith.constant 3 : index
            %c1_95 = arith.constant 1 : index
            %40:4 = scf.for %arg15 = %c0_93 to %c3_94 step %c1_95 iter_args(%arg16 = %arg11, %arg17 = %arg12, %arg18 = %arg13, %arg19 = %arg14) -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) {
              %c0_96 = arith.constant 0 : index
              %41 = memref.load %subview[%c0_96, %arg15, %arg5, %arg10] : memref<1x3x3x6xf32, strided<[108, 36, 6, 1], offset: ?>>
              %42 = vector.broadcast %41 : f32 to vector<16xf32>
              %c0_97 = arith.constant 0 : index
              %43 = vector.load %arg1[%0, %arg5, %arg10, %arg15, %c0_97] : memref<2x3x3x3x16xf32>, vector<16xf32>
              %44 = vector.fma %42, %43, %arg16 : vector<16xf32>
              %c1_98 = arith.constant 1 : index
              %45 = arith.addi %arg10, %c1_98 : index
              %46 = memref.load %subview[%c0_96, %arg15, %arg5, %45] : memref<1x3x3x6xf32, strided<[108, 36, 6, 1], offset: ?>>
              %47 = vector.broadcast %46 : f32 to vector<16xf32>
              %48 = vector.fma %47, %43, %arg17 : vector<16xf32>
              %c2_99 = arith.constant 2 : index
              %49 = arith.addi %arg10, %c2_99 : index
              %50 = memref.load %subview[%c0_96, %arg15, %arg5, %49] : memref<1x3x3x6xf32, strided<[108, 36, 6, 1], offset: ?>>
              %51 = vector.broadcast %50 : f32 to vector<16xf32>
              %52 = vector.fma %51, %43, %arg18 : vector<16xf32>
              %c3_100 = arith.constant 3 : index
              %53 = arith.addi %arg10, %c3_100 : index
              %54 = memref.load %subview[%c0_96, %arg15, %arg5, %53] : memref<1x3x3x6xf32, strided<[108, 36, 6, 1], offset: ?>>
              %55 = vector.broadcast %54 : f32 to vector<16xf32>
              %56 = vector.fma %55, %43, %arg19 : vector<16xf32>
              scf.yield %44, %48, %52, %56 : vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>
            }
            scf.yield %40#0, %40#1, %40#2, %40#3 : vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>
          }
          scf.yield %39#0, %39#1, %39#2, %39#3 : vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>
        }
        %reinterpret_cast = memref.reinterpret_cast %alloc to offset: [0], sizes: [16, 4], strides: [4, 1] : memref<1x16x1x4xf32> to memref<16x4xf32>
        %cst_4 = arith.constant dense<0.000000e+00> : vector<16x16xf32>
        %2 = vector.insert %1#0, %cst_4 [0] : vector<16xf32> into vector<16x16xf32>
        %3 = vector.insert %1#1, %2 [1] : vector<16xf32> into vector<16x16xf32>
        %4 = vector.insert %1#2, %3 [2] : vector<16xf32> into vector<16x16xf32>
        %5 = vector.insert %1#3, %4 [3] : vector<16xf32> into vector<16x16xf32>
        %6 = vector.transpose %5, [1, 0] : vector<16x16xf32> to vector<16x16xf32>
        %7 = vector.extract %6[0] : vector<16xf32> from vector<16x16xf32>
        %8 = vector.extract %6[1] : vector<16xf32> from vector<16x16xf32>
        %9 = vector.extract %6[2] : vector<16xf32> from vector<16x16xf32>
        %10 = vector.extract %6[3] : vector<16xf32> from vector<16x16xf32>
        %11 = vector.extract %6[4] : vector<16xf32> from vector<16x16xf32>
        %12 = vector.extract %6[5] : vector<16xf32> from vector<16x16xf32>
        %13 = vector.extract %6[6] : vector<16xf32> from vector<16x16xf32>
        %14 = vector.extract %6[7] : vector<16xf32> from vector<16x16xf32>
        %15 = vector.extract %6[8] : vector<16xf32> from vector<16x16xf32>
        %16 = vector.extract %6[9] : vector<16xf32> from vector<16x16xf32>
        %17 = vector.extract %6[10] : vector<16xf32> from vector<16x16xf32>
        %18 = vector.extract %6[11] : vector<16xf32> from vector<16x16xf32>
        %19 = vector.extract %6[12] : vector<16xf32> from vector<16x16xf32>
        %20 = vector.extract %6[13] : vector<16xf32> from vector<16x16xf32>
        %21 = vector.extract %6[14] : vector<16xf32> from vector<16x16xf32>
        %22 = vector.extract %6[15] : vector<16xf32> from vector<16x16xf32>
        %c0_5 = arith.constant 0 : index
        %c0_6 = arith.constant 0 : index
        %c0_7 = arith.constant 0 : index
        %c0_8 = arith.constant 0 : index
        %c0_9 = arith.constant 0 : index
        %c0_10 = arith.constant 0 : index
        %23 = vector.constant_mask [4] : vector<16xi1>
        vector.maskedstore %reinterpret_cast[%c0_9, %c0_10], %23, %7 : memref<16x4xf32>, vector<16xi1>, vector<16xf32>
        %c0_11 = arith.constant 0 : index
        %c1_12 = arith.constant 1 : index
        %c0_13 = arith.constant 0 : index
        %c0_14 = arith.constant 0 : index
        %c1_15 = arith.constant 1 : index
        %c0_16 = arith.constant 0 : index
        %24 = vector.constant_mask [4] : vector<16xi1>
        vector.maskedstore %reinterpret_cast[%c1_15, %c0_16], %24, %8 : memref<16x4xf32>, vector<16xi1>, vector<16xf32>
        %c0_17 = arith.constant 0 : index
        %c2 = arith.constant 2 : index
        %c0_18 = arith.constant 0 : index
        %c0_19 = arith.constant 0 : index
        %c2_20 = arith.constant 2 : index
        %c0_21 = arith.constant 0 : index
        %25 = vector.constant_mask [4] : vector<16xi1>
        vector.maskedstore %reinterpret_cast[%c2_20, %c0_21], %25, %9 : memref<16x4xf32>, vector<16xi1>, vector<16xf32>
        %c0_22 = arith.constant 0 : index
        %c3_23 = arith.constant 3 : index
        %c0_24 = arith.constant 0 : index
        %c0_25 = arith.constant 0 : index
        %c3_26 = arith.constant 3 : index
        %c0_27 = arith.constant 0 : index
        %26 = vector.constant_mask [4] : vector<16xi1>
        vector.maskedstore %reinterpret_cast[%c3_26, %c0_27], %26, %10 : memref<16x4xf32>, vector<16xi1>, vector<16xf32>
        %c0_28 = arith.constant 0 : index
        %c4_29 = arith.constant 4 : index
        %c0_30 = arith.constant 0 : index
        %c0_31 = arith.constant 0 : index
        %c4_32 = arith.constant 4 : index
        %c0_33 = arith.constant 0 : index
        %27 = vector.constant_mask [4] : vector<16xi1>
        vector.maskedstore %reinterpret_cast[%c4_32, %c0_33], %27, %11 : memref<16x4xf32>, vector<16xi1>, vector<16xf32>
        %c0_34 = arith.constant 0 : index
        %c5 = arith.constant 5 : index
        %c0_35 = arith.constant 0 : index
        %c0_36 = arith.constant 0 : index
        %c5_37 = arith.constant 5 : index
        %c0_38 = arith.constant 0 : index
        %28 = vector.constant_mask [4] : vector<16xi1>
        vector.maskedstore %reinterpret_cast[%c5_37, %c0_38], %28, %12 : memref<16x4xf32>, vector<16xi1>, vector<16xf32>
        %c0_39 = arith.constant 0 : index
        %c6 = arith.constant 6 : index
        %c0_40 = arith.constant 0 : index
        %c0_41 = arith.constant 0 : index
        %c6_42 = arith.constant 6 : index
        %c0_43 = arith.constant 0 : index
        %29 = vector.constant_mask [4] : vector<16xi1>
        vector.maskedstore %reinterpret_cast[%c6_42, %c0_43], %29, %13 : memref<16x4xf32>, vector<16xi1>, vector<16xf32>
        %c0_44 = arith.constant 0 : index
        %c7 = arith.constant 7 : index
        %c0_45 = arith.constant 0 : index
        %c0_46 = arith.constant 0 : index
        %c7_47 = arith.constant 7 : index
        %c0_48 = arith.constant 0 : index
        %30 = vector.constant_mask [4] : vector<16xi1>
        vector.maskedstore %reinterpret_cast[%c7_47, %c0_48], %30, %14 : memref<16x4xf32>, vector<16xi1>, vector<16xf32>
        %c0_49 = arith.constant 0 : index
        %c8 = arith.constant 8 : index
        %c0_50 = arith.constant 0 : index
        %c0_51 = arith.constant 0 : index
        %c8_52 = arith.constant 8 : index
        %c0_53 = arith.constant 0 : index
        %31 = vector.constant_mask [4] : vector<16xi1>
        vector.maskedstore %reinterpret_cast[%c8_52, %c0_53], %31, %15 : memref<16x4xf32>, vector<16xi1>, vector<16xf32>
        %c0_54 = arith.constant 0 : index
        %c9 = arith.constant 9 : index
        %c0_55 = arith.constant 0 : index
        %c0_56 = arith.constant 0 : index
        %c9_57 = arith.constant 9 : index
        %c0_58 = arith.constant 0 : index
        %32 = vector.constant_mask [4] : vector<16xi1>
        vector.maskedstore %reinterpret_cast[%c9_57, %c0_58], %32, %16 : memref<16x4xf32>, vector<16xi1>, vector<16xf32>
        %c0_59 = arith.constant 0 : index
        %c10 = arith.constant 10 : index
        %c0_60 = arith.constant 0 : index
        %c0_61 = arith.constant 0 : index
        %c10_62 = arith.constant 10 : index
        %c0_63 = arith.constant 0 : index
        %33 = vector.constant_mask [4] : vector<16xi1>
        vector.maskedstore %reinterpret_cast[%c10_62, %c0_63], %33, %17 : memref<16x4xf32>, vector<16xi1>, vector<16xf32>
        %c0_64 = arith.constant 0 : index
        %c11 = arith.constant 11 : index
        %c0_65 = arith.constant 0 : index
        %c0_66 = arith.constant 0 : index
        %c11_67 = arith.constant 11 : index
        %c0_68 = arith.constant 0 : index
        %34 = vector.constant_mask [4] : vector<16xi1>
        vector.maskedstore %reinterpret_cast[%c11_67, %c0_68], %34, %18 : memref<16x4xf32>, vector<16xi1>, vector<16xf32>
        %c0_69 = arith.constant 0 : index
        %c12 = arith.constant 12 : index
        %c0_70 = arith.constant 0 : index
        %c0_71 = arith.constant 0 : index
        %c12_72 = arith.constant 12 : index
        %c0_73 = arith.constant 0 : index
        %35 = vector.constant_mask [4] : vector<16xi1>
        vector.maskedstore %reinterpret_cast[%c12_72, %c0_73], %35, %19 : memref<16x4xf32>, vector<16xi1>, vector<16xf32>
        %c0_74 = arith.constant 0 : index
        %c13 = arith.constant 13 : index
        %c0_75 = arith.constant 0 : index
        %c0_76 = arith.constant 0 : index
        %c13_77 = arith.constant 13 : index
        %c0_78 = arith.constant 0 : index
        %36 = vector.constant_mask [4] : vector<16xi1>
        vector.maskedstore %reinterpret_cast[%c13_77, %c0_78], %36, %20 : memref<16x4xf32>, vector<16xi1>, vector<16xf32>
        %c0_79 = arith.constant 0 : index
        %c14 = arith.constant 14 : index
        %c0_80 = arith.constant 0 : index
        %c0_81 = arith.constant 0 : index
        %c14_82 = arith.constant 14 : index
        %c0_83 = arith.constant 0 : index
        %37 = vector.constant_mask [4] : vector<16xi1>
        vector.maskedstore %reinterpret_cast[%c14_82, %c0_83], %37, %21 : memref<16x4xf32>, vector<16xi1>, vector<16xf32>
        %c0_84 = arith.constant 0 : index
        %c15 = arith.constant 15 : index
        %c0_85 = arith.constant 0 : index
        %c0_86 = arith.constant 0 : index
        %c15_87 = arith.constant 15 : index
        %c0_88 = arith.constant 0 : index
        %38 = vector.constant_mask [4] : vector<16xi1>
        vector.maskedstore %reinterpret_cast[%c15_87, %c0_88], %38, %22 : memref<16x4xf32>, vector<16xi1>, vector<16xf32>
        %subview_89 = memref.subview %arg2[0, %arg3, %arg4, 0] [1, 16, 1, 4] [1, 1, 1, 1] : memref<1x32x4x4xf32> to memref<1x16x1x4xf32, strided<[512, 16, 4, 1], offset: ?>>
        linalg.copy ins(%alloc : memref<1x16x1x4xf32>) outs(%subview_89 : memref<1x16x1x4xf32, strided<[512, 16, 4, 1], offset: ?>>)
      }
    }
    return
  }
}
