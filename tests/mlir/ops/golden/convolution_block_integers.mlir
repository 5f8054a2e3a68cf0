module {
  func.func @f(%arg0: memref<1x3x6x6xi32>, %arg1: memref<8x3x3x3x4xi32> {tuner.order = array<i64: 0, 1, 2, 3>, tuner.packing = 4 : i64, tuner.weight}, %arg2: memref<1x32x4x4xi32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c32 = arith.constant 32 : index
    %c4_0 = arith.constant 4 : index
    %c0_i32 = arith.constant 0 : i32
    %alloc = memref.alloc() : memref<1x4x1x4xi32>
    scf.for %arg3 = %c0 to %c32 step %c4_0 {
      scf.for %arg4 = %c0 to %c4 step %c1 {
        %subview = memref.subview %arg0[0, 0, %arg4, 0] [1, 3, 3, 6] [1, 1, 1, 1] : memref<1x3x6x6xi32> to memref<1x3x3x6xi32, strided<[108, 36, 6, 1], offset: ?>>
        %c4_1 = arith.constant 4 : index
        %0 = arith.divui %arg3, %c4_1 : index
        %cst = arith.constant dense<0> : vector<16xi32>
        %c0_2 = arith.constant 0 : index
        %c3 = arith.constant 3 : index
        %c1_3 = arith.constant 1 : index
        %1:4 = scf.for %arg5 = %c0_2 to %c3 step %c1_3 iter_args(%arg6 = %cst, %arg7 = %cst, %arg8 = %cst, %arg9 = %cst) -> (vector<16xi32>, vector<16xi32>, vector<16xi32>, vector<16xi32>) {
          %c0_29 = arith.constant 0 : index
          %c3_30 = arith.constant 3 : index
          %c1_31 = arith.constant 1 : index
          %27:4 = scf.for %arg10 = %c0_29 to %c3_30 step %c1_31 iter_args(%arg11 = %arg6, %arg12 = %arg7, %arg13 = %arg8, %arg14 = %arg9) -> (vector<16xi32>, vector<16xi32>, vector<16xi32>, vector<16xi32>) {
            %c0_32 = arith.constant 0 : index
            %c3_33 = arith.constant 3 : index
            %c1_34 = arith.constant 1 : index
            %28:4 = scf.for %arg15 = %c0_32 to %c3_33 step %c1_34 iter_args(%arg16 = %arg11, %arg17 = %arg12, %arg18 = %arg13, %arg19 = %arg14) -> (vector<16xi32>, vector<16xi32>, vector<16xi32>, vector<16xi32>) {
              %c0_35 = arith.constant 0 : index
              %29 = memref.load %subview[%c0_35, %arg15, %arg5, %arg10] : memref<1x3x3x6xi32, strided<[108, 36, 6, 1], offset: ?>>
              %30 = vector.broadcast %29 : i32 to vector<16xi32>
              %c0_36 = arith.constant 0 : index
              %31 = vector.constant_mask [4] : vector<16xi1>
              %cst_37 = arith.constant dense<0> : vector<16xi32>
              %32 = vector.maskedload %arg1[%0, %arg5, %arg10, %arg15, %c0_36], %31, %cst_37 : memref<8x3x3x3x4xi32>, vector<16xi1>, vector<16xi32> into vector<16xi32>
              %33 = arith.muli %30, %32 : vector<16xi32>
              %34 = arith.addi %arg16, %33 : vector<16xi32>
              %c1_38 = arith.constant 1 : index
              %35 = arith.addi %arg10, %c1_38 : index
              %36 = memref.load %subview[%c0_35, %arg15, %arg5, %35] : memref<1x3x3x6xi32, strided<[108, 36, 6, 1], offset: ?>>
              %37 = vector.broadcast %36 : i32 to vector<16xi32>
              %38 = arith.muli %37, %32 : vector<16xi32>
              %39 = arith.addi %arg17, %38 : vector<16xi32>
              %c2_39 = arith.constant 2 : index
              %40 = arith.addi %arg10, %c2_39 : index
              %41 = memref.load %subview[%c0_35, %arg15, %arg5, %40] : memref<1x3x3x6xi32, strided<[108, 36, 6, 1], offset: ?>>
              %42 = vector.broadcast %41 : i32 to vector<16xi32>
              %43 = arith.muli %42, %32 : vector<16xi32>
              %44 = arith.addi %arg18, %43 : vector<16xi32>
              %c3_40 = arith.constant 3 : index
              %45 = arith.addi %arg10, %c3_40 : index
              %46 = memref.load %subview[%c0_35, %arg15, %arg5, %45] : memref<1x3x3x6xi32, strided<[108, 36, 6, 1], offset: ?>>
              %47 = vector.broadcast %46 : i32 to vector<16xi32>
              %48 = arith.muli %47, %32 : vector<16xi32>
              %49 = arith.addi %arg19, %48 : vector<16xi32>
              scf.yield %34, %39, %44, %49 : vector<16xi32>, vector<16xi32>, vector<16xi32>, vector<16xi32>
            }
            scf.yield %28#0, %28#1, %28#2, %28#3 : vector<16xi32>, vector<16xi32>, vector<16xi32>, vector<16xi32>
          }
          scf.yield %27#0, %27#1, %27#2, %27#3 : vector<16xi32>, vector<16xi32>, vector<16xi32>, vector<16xi32>
        }
        %reinterpret_cast = memref.reinterpret_cast %alloc to offset: [0], sizes: [4, 4], strides: [4, 1] : memref<1x4x1x4xi32> to memref<4x4xi32>
        %cst_4 = arith.constant dense<0> : vector<16x16xi32>
        %2 = vector.insert %1#0, %cst_4 [0] : vector<16xi32> into vector<16x16xi32>
        %3 = vector.insert %1#1, %2 [1] : vector<16xi32> into vector<16x16xi32>
        %4 = vector.insert %1#2, %3 [2] : vector<16xi32> into vector<16x16xi32>
        %5 = vector.insert %1#3, %4 [3] : vector<16xi32> into vector<16x16xi32>
        %6 = vector.transpose %5, [1, 0] : vector<16x16xi32> to vector<16x16xi32>
        %7 = vector.extract %6[0] : vector<16xi32> from vector<16x16xi32>
        %8 = vector.extract %6[1] : vector<16xi32> from vector<16x16xi32>
        %9 = vector.extract %6[2] : vector<16xi32> from vector<16x16xi32>
        %10 = vector.extract %6[3] : vector<16xi32> from vector<16x16xi32>
        %11 = vector.extract %6[4] : vector<16xi32> from vector<16x16xi32>
        %12 = vector.extract %6[5] : vector<16xi32> from vector<16x16xi32>
        %13 = vector.extract %6[6] : vector<16xi32> from vector<16x16xi32>
        %14 = vector.extract %6[7] : vector<16xi32> from vector<16x16xi32>
        %15 = vector.extract %6[8] : vector<16xi32> from vector<16x16xi32>
        %16 = vector.extract %6[9] : vector<16xi32> from vector<16x16xi32>
        %17 = vector.extract %6[10] : vector<16xi32> from vector<16x16xi32>
        %18 = vector.extract %6[11] : vector<16xi32> from vector<16x16xi32>
        %19 = vector.extract %6[12] : vector<16xi32> from vector<16x16xi32>
        %20 = vector.extract %6[13] : vector<16xi32> from vector<16x16xi32>
        %21 = vector.extract %6[14] : vector<16xi32> from vector<16x16xi32>
        %22 = vector.extract %6[15] : vector<16xi32> from vector<16x16xi32>
        %c0_5 = arith.constant 0 : index
        %c0_6 = arith.constant 0 : index
        %c0_7 = arith.constant 0 : index
        %c0_8 = arith.constant 0 : index
        %c0_9 = arith.constant 0 : index
        %c0_10 = arith.constant 0 : index
        %23 = vector.constant_mask [4] : vector<16xi1>
        vector.maskedstore %reinterpret_cast[%c0_9, %c0_10], %23, %7 : memref<4x4xi32>, vector<16xi1>, vector<16xi32>
        %c0_11 = arith.constant 0 : index
        %c1_12 = arith.constant 1 : index
        %c0_13 = arith.constant 0 : index
        %c0_14 = arith.constant 0 : index
        %c1_15 = arith.constant 1 : index
        %c0_16 = arith.constant 0 : index
        %24 = vector.constant_mask [4] : vector<16xi1>
        vector.maskedstore %reinterpret_cast[%c1_15, %c0_16], %24, %8 : memref<4x4xi32>, vector<16xi1>, vector<16xi32>
        %c0_17 = arith.constant 0 : index
        %c2 = arith.constant 2 : index
        %c0_18 = arith.constant 0 : index
        %c0_19 = arith.constant 0 : index
        %c2_20 = arith.constant 2 : index
        %c0_21 = arith.constant 0 : index
        %25 = vector.constant_mask [4] : vector<16xi1>
        vector.maskedstore %reinterpret_cast[%c2_20, %c0_21], %25, %9 : memref<4x4xi32>, vector<16xi1>, vector<16xi32>
        %c0_22 = arith.constant 0 : index
        %c3_23 = arith.constant 3 : index
        %c0_24 = arith.constant 0 : index
        %c0_25 = arith.constant 0 : index
        %c3_26 = arith.constant 3 : index
        %c0_27 = arith.constant 0 : index
        %26 = vector.constant_mask [4] : vector<16xi1>
        vector.maskedstore %reinterpret_cast[%c3_26, %c0_27], %26, %10 : memref<4x4xi32>, vector<16xi1>, vector<16xi32>
        %subview_28 = memref.subview %arg2[0, %arg3, %arg4, 0] [1, 4, 1, 4] [1, 1, 1, 1] : memref<1x32x4x4xi32> to memref<1x4x1x4xi32, strided<[512, 16, 4, 1], offset: ?>>
        linalg.copy ins(%alloc : memref<1x4x1x4xi32>) outs(%subview_28 : memref<1x4x1x4xi32, strided<[512, 16, 4, 1], offset: ?>>)
      }
    }
    return
  }
}
