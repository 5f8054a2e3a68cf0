module {
  func.func private @smmla_128(vector<4xi32>, vector<16xi8>, vector<16xi8>) -> vector<4xi32>
  func.func @f(%arg0: memref<2x64xi8>, %arg1: memref<64x4xi8>, %arg2: memref<2x4xi32>) {
    %c0_i32 = arith.constant 0 : i32
    %alloc = memref.alloc() {alignment = 64 : i64} : memref<8x16xi8>
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c1_0 = arith.constant 1 : index
    scf.for %arg3 = %c0 to %c1 step %c1_0 {
      %c0_7 = arith.constant 0 : index
      %c4_8 = arith.constant 4 : index
      %c1_9 = arith.constant 1 : index
      scf.for %arg4 = %c0_7 to %c4_8 step %c1_9 {
        %c16 = arith.constant 16 : index
        %0 = arith.muli %arg4, %c16 : index
        %c2 = arith.constant 2 : index
        %1 = arith.muli %arg3, %c2 : index
        %2 = vector.load %arg0[%1, %0] : memref<2x64xi8>, vector<16xi8>
        %c1_10 = arith.constant 1 : index
        %3 = arith.addi %1, %c1_10 : index
        %4 = vector.load %arg0[%3, %0] : memref<2x64xi8>, vector<16xi8>
        %c1_11 = arith.constant 1 : index
        %5 = arith.divui %arg3, %c1_11 : index
        %c1_12 = arith.constant 1 : index
        %6 = arith.remui %arg3, %c1_12 : index
        %cst = arith.constant dense<0> : vector<2x2xi64>
        %7 = vector.bitcast %2 : vector<16xi8> to vector<2xi64>
        %8 = vector.insert %7, %cst [0] : vector<2xi64> into vector<2x2xi64>
        %9 = vector.bitcast %4 : vector<16xi8> to vector<2xi64>
        %10 = vector.insert %9, %8 [1] : vector<2xi64> into vector<2x2xi64>
        %11 = vector.transpose %10, [1, 0] : vector<2x2xi64> to vector<2x2xi64>
        %12 = vector.extract %11[0] : vector<2xi64> from vector<2x2xi64>
        %13 = vector.extract %11[1] : vector<2xi64> from vector<2x2xi64>
        %14 = vector.bitcast %12 : vector<2xi64> to vector<16xi8>
        %15 = vector.bitcast %13 : vector<2xi64> to vector<16xi8>
        %c0_13 = arith.constant 0 : index
        %c2_14 = arith.constant 2 : index
        %16 = arith.muli %arg4, %c2_14 : index
        %17 = arith.addi %16, %c0_13 : index
        %c0_15 = arith.constant 0 : index
        %c2_16 = arith.constant 2 : index
        %18 = arith.divui %c0_15, %c2_16 : index
        %19 = arith.addi %18, %5 : index
        %c8 = arith.constant 8 : index
        %20 = arith.muli %19, %c8 : index
        %21 = arith.addi %20, %17 : index
        %c16_17 = arith.constant 16 : index
        %22 = arith.muli %6, %c16_17 : index
        vector.store %14, %alloc[%21, %22] : memref<8x16xi8>, vector<16xi8>
        %c1_18 = arith.constant 1 : index
        %c2_19 = arith.constant 2 : index
        %23 = arith.muli %arg4, %c2_19 : index
        %24 = arith.addi %23, %c1_18 : index
        %c0_20 = arith.constant 0 : index
        %c2_21 = arith.constant 2 : index
        %25 = arith.divui %c0_20, %c2_21 : index
        %26 = arith.addi %25, %5 : index
        %c8_22 = arith.constant 8 : index
        %27 = arith.muli %26, %c8_22 : index
        %28 = arith.addi %27, %24 : index
        %c16_23 = arith.constant 16 : index
        %29 = arith.muli %6, %c16_23 : index
        vector.store %15, %alloc[%28, %29] : memref<8x16xi8>, vector<16xi8>
      }
    }
    %alloc_1 = memref.alloc() {alignment = 64 : i64} : memref<8x32xi8>
    %c0_2 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c1_3 = arith.constant 1 : index
    scf.for %arg3 = %c0_2 to %c4 step %c1_3 {
      %c0_7 = arith.constant 0 : index
      %c1_8 = arith.constant 1 : index
      %c1_9 = arith.constant 1 : index
      scf.for %arg4 = %c0_7 to %c1_8 step %c1_9 {
        %c4_10 = arith.constant 4 : index
        %0 = arith.muli %arg4, %c4_10 : index
        %c16 = arith.constant 16 : index
        %1 = arith.muli %arg3, %c16 : index
        %c0_11 = arith.constant 0 : index
        %c2 = arith.constant 2 : index
        %c1_12 = arith.constant 1 : index
        scf.for %arg5 = %c0_11 to %c2 step %c1_12 {
          %c8 = arith.constant 8 : index
          %2 = arith.muli %arg5, %c8 : index
          %3 = arith.addi %1, %2 : index
          %c16_13 = arith.constant 16 : index
          %4 = arith.addi %3, %c16_13 : index
          memref.prefetch %arg1[%4, %0], read, locality<2>, data : memref<64x4xi8>
          %c1_14 = arith.constant 1 : index
          %5 = arith.addi %4, %c1_14 : index
          memref.prefetch %arg1[%5, %0], read, locality<2>, data : memref<64x4xi8>
          %c2_15 = arith.constant 2 : index
          %6 = arith.addi %4, %c2_15 : index
          memref.prefetch %arg1[%6, %0], read, locality<2>, data : memref<64x4xi8>
          %c3 = arith.constant 3 : index
          %7 = arith.addi %4, %c3 : index
          memref.prefetch %arg1[%7, %0], read, locality<2>, data : memref<64x4xi8>
          %c4_16 = arith.constant 4 : index
          %8 = arith.addi %4, %c4_16 : index
          memref.prefetch %arg1[%8, %0], read, locality<2>, data : memref<64x4xi8>
          %c5 = arith.constant 5 : index
          %9 = arith.addi %4, %c5 : index
          memref.prefetch %arg1[%9, %0], read, locality<2>, data : memref<64x4xi8>
          %c6 = arith.constant 6 : index
          %10 = arith.addi %4, %c6 : index
          memref.prefetch %arg1[%10, %0], read, locality<2>, data : memref<64x4xi8>
          %c7 = arith.constant 7 : index
          %11 = arith.addi %4, %c7 : index
          memref.prefetch %arg1[%11, %0], read, locality<2>, data : memref<64x4xi8>
          %12 = vector.load %arg1[%3, %0] : memref<64x4xi8>, vector<4xi8>
          %c1_17 = arith.constant 1 : index
          %13 = arith.addi %3, %c1_17 : index
          %14 = vector.load %arg1[%13, %0] : memref<64x4xi8>, vector<4xi8>
          %c2_18 = arith.constant 2 : index
          %15 = arith.addi %3, %c2_18 : index
          %16 = vector.load %arg1[%15, %0] : memref<64x4xi8>, vector<4xi8>
          %c3_19 = arith.constant 3 : index
          %17 = arith.addi %3, %c3_19 : index
          %18 = vector.load %arg1[%17, %0] : memref<64x4xi8>, vector<4xi8>
          %c4_20 = arith.constant 4 : index
          %19 = arith.addi %3, %c4_20 : index
          %20 = vector.load %arg1[%19, %0] : memref<64x4xi8>, vector<4xi8>
          %c5_21 = arith.constant 5 : index
          %21 = arith.addi %3, %c5_21 : index
          %22 = vector.load %arg1[%21, %0] : memref<64x4xi8>, vector<4xi8>
          %c6_22 = arith.constant 6 : index
          %23 = arith.addi %3, %c6_22 : index
          %24 = vector.load %arg1[%23, %0] : memref<64x4xi8>, vector<4xi8>
          %c7_23 = arith.constant 7 : index
          %25 = arith.addi %3, %c7_23 : index
          %26 = vector.load %arg1[%25, %0] : memref<64x4xi8>, vector<4xi8>
          %27 = vector.interleave %12, %20 : vector<4xi8> -> vector<8xi8>
          %28 = vector.interleave %14, %22 : vector<4xi8> -> vector<8xi8>
          %29 = vector.interleave %16, %24 : vector<4xi8> -> vector<8xi8>
          %30 = vector.interleave %18, %26 : vector<4xi8> -> vector<8xi8>
          %31 = vector.interleave %27, %29 : vector<8xi8> -> vector<16xi8>
          %32 = vector.interleave %28, %30 : vector<8xi8> -> vector<16xi8>
          %33 = vector.interleave %31, %32 : vector<16xi8> -> vector<32xi8>
          %34 = vector.extract_strided_slice %33 {offsets = [0], sizes = [16], strides = [1]} : vector<32xi8> to vector<16xi8>
          %35 = vector.extract_strided_slice %33 {offsets = [16], sizes = [16], strides = [1]} : vector<32xi8> to vector<16xi8>
          %c0_24 = arith.constant 0 : index
          %c2_25 = arith.constant 2 : index
          %36 = arith.muli %arg3, %c2_25 : index
          %37 = arith.addi %36, %arg5 : index
          %c0_26 = arith.constant 0 : index
          %c4_27 = arith.constant 4 : index
          %38 = arith.divui %c0_26, %c4_27 : index
          %39 = arith.addi %38, %arg4 : index
          %c8_28 = arith.constant 8 : index
          %40 = arith.muli %39, %c8_28 : index
          %41 = arith.addi %40, %37 : index
          %c16_29 = arith.constant 16 : index
          %42 = arith.muli %c0_24, %c16_29 : index
          vector.store %34, %alloc_1[%41, %42] : memref<8x32xi8>, vector<16xi8>
          %c1_30 = arith.constant 1 : index
          %c2_31 = arith.constant 2 : index
          %43 = arith.muli %arg3, %c2_31 : index
          %44 = arith.addi %43, %arg5 : index
          %c0_32 = arith.constant 0 : index
          %c4_33 = arith.constant 4 : index
          %45 = arith.divui %c0_32, %c4_33 : index
          %46 = arith.addi %45, %arg4 : index
          %c8_34 = arith.constant 8 : index
          %47 = arith.muli %46, %c8_34 : index
          %48 = arith.addi %47, %44 : index
          %c16_35 = arith.constant 16 : index
          %49 = arith.muli %c1_30, %c16_35 : index
          vector.store %35, %alloc_1[%48, %49] : memref<8x32xi8>, vector<16xi8>
        }
      }
    }
    %c0_4 = arith.constant 0 : index
    %c1_5 = arith.constant 1 : index
    %c1_6 = arith.constant 1 : index
    scf.for %arg3 = %c0_4 to %c1_5 step %c1_6 {
      %c2 = arith.constant 2 : index
      %0 = arith.muli %arg3, %c2 : index
      %c0_7 = arith.constant 0 : index
      %c1_8 = arith.constant 1 : index
      %c1_9 = arith.constant 1 : index
      scf.for %arg4 = %c0_7 to %c1_8 step %c1_9 {
        %cst = arith.constant dense<0> : vector<4xi32>
        %cst_10 = arith.constant dense<0> : vector<4xi32>
        %c0_11 = arith.constant 0 : index
        %c8 = arith.constant 8 : index
        %c1_12 = arith.constant 1 : index
        %1:2 = scf.for %arg5 = %c0_11 to %c8 step %c1_12 iter_args(%arg6 = %cst, %arg7 = %cst_10) -> (vector<4xi32>, vector<4xi32>) {
          %c0_15 = arith.constant 0 : index
          %c2_16 = arith.constant 2 : index
          %6 = arith.divui %c0_15, %c2_16 : index
          %7 = arith.addi %6, %arg3 : index
          %c8_17 = arith.constant 8 : index
          %8 = arith.muli %7, %c8_17 : index
          %9 = arith.addi %8, %arg5 : index
          %c0_18 = arith.constant 0 : index
          %10 = vector.load %alloc[%9, %c0_18] : memref<8x16xi8>, vector<16xi8>
          %c0_19 = arith.constant 0 : index
          %c4_20 = arith.constant 4 : index
          %11 = arith.divui %c0_19, %c4_20 : index
          %12 = arith.addi %11, %arg4 : index
          %c8_21 = arith.constant 8 : index
          %13 = arith.muli %12, %c8_21 : index
          %14 = arith.addi %13, %arg5 : index
          %c0_22 = arith.constant 0 : index
          %c16 = arith.constant 16 : index
          %15 = vector.load %alloc_1[%14, %c0_22] : memref<8x32xi8>, vector<16xi8>
          %16 = vector.load %alloc_1[%14, %c16] : memref<8x32xi8>, vector<16xi8>
          %17 = func.call @smmla_128(%arg6, %10, %15) : (vector<4xi32>, vector<16xi8>, vector<16xi8>) -> vector<4xi32>
          %18 = func.call @smmla_128(%arg7, %10, %16) : (vector<4xi32>, vector<16xi8>, vector<16xi8>) -> vector<4xi32>
          scf.yield %17, %18 : vector<4xi32>, vector<4xi32>
        }
        %c4_13 = arith.constant 4 : index
        %2 = arith.muli %arg4, %c4_13 : index
        %3 = vector.shuffle %1#0, %1#1 [0, 1, 4, 5] : vector<4xi32>, vector<4xi32>
        vector.store %3, %arg2[%0, %2] : memref<2x4xi32>, vector<4xi32>
        %4 = vector.shuffle %1#0, %1#1 [2, 3, 6, 7] : vector<4xi32>, vector<4xi32>
        %c1_14 = arith.constant 1 : index
        %5 = arith.addi %0, %c1_14 : index
        vector.store %4, %arg2[%5, %2] : memref<2x4xi32>, vector<4xi32>
      }
    }
    return
  }
}
