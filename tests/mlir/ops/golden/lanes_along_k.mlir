module {
  func.func @f(%arg0: memref<2x9xf32>, %arg1: memref<9x3xf32>, %arg2: memref<2x3xf32>) {
    %cst = arith.constant 0.000000e+00 : f32
    %alloc = memref.alloc() {alignment = 64 : i64} : memref<3x16xf32>
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %c1 = arith.constant 1 : index
    scf.for %arg3 = %c0 to %c2 step %c1 {
      %c4 = arith.constant 4 : index
      %0 = arith.muli %arg3, %c4 : index
      %c0_5 = arith.constant 0 : index
      %1 = vector.constant_mask [3] : vector<4xi1>
      %cst_6 = arith.constant dense<0.000000e+00> : vector<4xf32>
      %2 = vector.maskedload %arg1[%0, %c0_5], %1, %cst_6 : memref<9x3xf32>, vector<4xi1>, vector<4xf32> into vector<4xf32>
      %c1_7 = arith.constant 1 : index
      %3 = arith.addi %0, %c1_7 : index
      %c0_8 = arith.constant 0 : index
      %4 = vector.constant_mask [3] : vector<4xi1>
      %cst_9 = arith.constant dense<0.000000e+00> : vector<4xf32>
      %5 = vector.maskedload %arg1[%3, %c0_8], %4, %cst_9 : memref<9x3xf32>, vector<4xi1>, vector<4xf32> into vector<4xf32>
      %c2_10 = arith.constant 2 : index
      %6 = arith.addi %0, %c2_10 : index
      %c0_11 = arith.constant 0 : index
      %7 = vector.constant_mask [3] : vector<4xi1>
      %cst_12 = arith.constant dense<0.000000e+00> : vector<4xf32>
      %8 = vector.maskedload %arg1[%6, %c0_11], %7, %cst_12 : memref<9x3xf32>, vector<4xi1>, vector<4xf32> into vector<4xf32>
      %c3_13 = arith.constant 3 : index
      %9 = arith.addi %0, %c3_13 : index
      %c0_14 = arith.constant 0 : index
      %10 = vector.constant_mask [3] : vector<4xi1>
      %cst_15 = arith.constant dense<0.000000e+00> : vector<4xf32>
      %11 = vector.maskedload %arg1[%9, %c0_14], %10, %cst_15 : memref<9x3xf32>, vector<4xi1>, vector<4xf32> into vector<4xf32>
      %cst_16 = arith.constant dense<0.000000e+00> : vector<4xf32>
      %12 = vector.shuffle %2, %5 [0, 1, 2, 3, 4, 5, 6, 7] : vector<4xf32>, vector<4xf32>
      %13 = vector.shuffle %8, %11 [0, 1, 2, 3, 4, 5, 6, 7] : vector<4xf32>, vector<4xf32>
      %14 = vector.shuffle %12, %13 [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15] : vector<8xf32>, vector<8xf32>
      %15 = vector.shuffle %14, %14 [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15] : vector<16xf32>, vector<16xf32>
      %c0_17 = arith.constant 0 : index
      vector.store %15, %alloc[%arg3, %c0_17] : memref<3x16xf32>, vector<16xf32>
    }
    %c2_0 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c1_1 = arith.constant 1 : index
    scf.for %arg3 = %c2_0 to %c3 step %c1_1 {
      %c4 = arith.constant 4 : index
      %0 = arith.muli %arg3, %c4 : index
      %c0_5 = arith.constant 0 : index
      %1 = vector.constant_mask [3] : vector<4xi1>
      %cst_6 = arith.constant dense<0.000000e+00> : vector<4xf32>
      %2 = vector.maskedload %arg1[%0, %c0_5], %1, %cst_6 : memref<9x3xf32>, vector<4xi1>, vector<4xf32> into vector<4xf32>
      %cst_7 = arith.constant dense<0.000000e+00> : vector<4xf32>
      %3 = vector.shuffle %2, %cst_7 [0, 1, 2, 3, 4, 5, 6, 7] : vector<4xf32>, vector<4xf32>
      %4 = vector.shuffle %cst_7, %cst_7 [0, 1, 2, 3, 4, 5, 6, 7] : vector<4xf32>, vector<4xf32>
      %5 = vector.shuffle %3, %4 [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15] : vector<8xf32>, vector<8xf32>
      %6 = vector.shuffle %5, %5 [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15] : vector<16xf32>, vector<16xf32>
      %c0_8 = arith.constant 0 : index
      vector.store %6, %alloc[%arg3, %c0_8] : memref<3x16xf32>, vector<16xf32>
    }
    %c0_2 = arith.constant 0 : index
    %c1_3 = arith.constant 1 : index
    %c1_4 = arith.constant 1 : index
    scf.for %arg3 = %c0_2 to %c1_3 step %c1_4 {
      %c12 = arith.constant 12 : index
      %0 = arith.muli %arg3, %c12 : index
      %cst_5 = arith.constant dense<0.000000e+00> : vector<16xf32>
      %c0_6 = arith.constant 0 : index
      %c2_7 = arith.constant 2 : index
      %c1_8 = arith.constant 1 : index
      %1:2 = scf.for %arg4 = %c0_6 to %c2_7 step %c1_8 iter_args(%arg5 = %cst_5, %arg6 = %cst_5) -> (vector<16xf32>, vector<16xf32>) {
        %c0_18 = arith.constant 0 : index
        %29 = vector.load %alloc[%arg4, %c0_18] : memref<3x16xf32>, vector<16xf32>
        %c4_19 = arith.constant 4 : index
        %30 = arith.muli %arg4, %c4_19 : index
        %31 = vector.load %arg0[%0, %30] : memref<2x9xf32>, vector<4xf32>
        %32 = vector.shuffle %31, %31 [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3] : vector<4xf32>, vector<4xf32>
        %c1_20 = arith.constant 1 : index
        %33 = arith.addi %0, %c1_20 : index
        %c4_21 = arith.constant 4 : index
        %34 = arith.muli %arg4, %c4_21 : index
        %35 = vector.load %arg0[%33, %34] : memref<2x9xf32>, vector<4xf32>
        %36 = vector.shuffle %35, %35 [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3] : vector<4xf32>, vector<4xf32>
        %37 = vector.fma %32, %29, %arg5 : vector<16xf32>
        %38 = vector.fma %36, %29, %arg6 : vector<16xf32>
        scf.yield %37, %38 : vector<16xf32>, vector<16xf32>
      }
      %c2_9 = arith.constant 2 : index
      %c0_10 = arith.constant 0 : index
      %2 = vector.load %alloc[%c2_9, %c0_10] : memref<3x16xf32>, vector<16xf32>
      %c4 = arith.constant 4 : index
      %3 = arith.muli %c2_9, %c4 : index
      %4 = vector.constant_mask [1] : vector<4xi1>
      %cst_11 = arith.constant dense<0.000000e+00> : vector<4xf32>
      %5 = vector.maskedload %arg0[%0, %3], %4, %cst_11 : memref<2x9xf32>, vector<4xi1>, vector<4xf32> into vector<4xf32>
      %6 = vector.shuffle %5, %5 [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3] : vector<4xf32>, vector<4xf32>
      %c1_12 = arith.constant 1 : index
      %7 = arith.addi %0, %c1_12 : index
      %c4_13 = arith.constant 4 : index
      %8 = arith.muli %c2_9, %c4_13 : index
      %9 = vector.constant_mask [1] : vector<4xi1>
      %cst_14 = arith.constant dense<0.000000e+00> : vector<4xf32>
      %10 = vector.maskedload %arg0[%7, %8], %9, %cst_14 : memref<2x9xf32>, vector<4xi1>, vector<4xf32> into vector<4xf32>
      %11 = vector.shuffle %10, %10 [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3] : vector<4xf32>, vector<4xf32>
      %12 = vector.fma %6, %2, %1#0 : vector<16xf32>
      %13 = vector.fma %11, %2, %1#1 : vector<16xf32>
      %14 = vector.shuffle %12, %13 [0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29] : vector<16xf32>, vector<16xf32>
      %15 = vector.shuffle %12, %13 [2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31] : vector<16xf32>, vector<16xf32>
      %16 = vector.shuffle %13, %13 [0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29] : vector<16xf32>, vector<16xf32>
      %17 = vector.shuffle %13, %13 [2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31] : vector<16xf32>, vector<16xf32>
      %18 = arith.addf %14, %15 : vector<16xf32>
      %19 = arith.addf %16, %17 : vector<16xf32>
      %20 = vector.shuffle %18, %19 [0, 2, 16, 18, 4, 6, 20, 22, 8, 10, 24, 26, 12, 14, 28, 30] : vector<16xf32>, vector<16xf32>
      %21 = vector.shuffle %18, %19 [1, 3, 17, 19, 5, 7, 21, 23, 9, 11, 25, 27, 13, 15, 29, 31] : vector<16xf32>, vector<16xf32>
      %22 = arith.addf %20, %21 : vector<16xf32>
      %23 = vector.shuffle %22, %22 [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15] : vector<16xf32>, vector<16xf32>
      %24 = vector.extract_strided_slice %23 {offsets = [0], sizes = [4], strides = [1]} : vector<16xf32> to vector<4xf32>
      %c0_15 = arith.constant 0 : index
      %25 = vector.constant_mask [3] : vector<4xi1>
      vector.maskedstore %arg2[%0, %c0_15], %25, %24 : memref<2x3xf32>, vector<4xi1>, vector<4xf32>
      %26 = vector.extract_strided_slice %23 {offsets = [4], sizes = [4], strides = [1]} : vector<16xf32> to vector<4xf32>
      %c1_16 = arith.constant 1 : index
      %27 = arith.addi %0, %c1_16 : index
      %c0_17 = arith.constant 0 : index
      %28 = vector.constant_mask [3] : vector<4xi1>
      vector.maskedstore %arg2[%27, %c0_17], %28, %26 : memref<2x3xf32>, vector<4xi1>, vector<4xf32>
    }
    return
  }
}
