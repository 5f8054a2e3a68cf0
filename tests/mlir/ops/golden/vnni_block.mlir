module {
  func.func private @vpdpbusd_512(vector<16xi32>, vector<64xi8>, vector<64xi8>) -> vector<16xi32>
  func.func @f(%arg0: memref<2x64xi8>, %arg1: memref<64x16xi8>, %arg2: memref<2x16xi32>) {
    %c0_i32 = arith.constant 0 : i32
    %alloc = memref.alloc() {alignment = 64 : i64} : memref<2xi32>
    %alloc_0 = memref.alloc() {alignment = 64 : i64} : memref<16x64xi8>
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c1_1 = arith.constant 1 : index
    scf.for %arg3 = %c0 to %c1 step %c1_1 {
      %c0_5 = arith.constant 0 : index
      %c1_6 = arith.constant 1 : index
      %c1_7 = arith.constant 1 : index
      scf.for %arg4 = %c0_5 to %c1_6 step %c1_7 {
        %c16 = arith.constant 16 : index
        %0 = arith.muli %arg4, %c16 : index
        %c64 = arith.constant 64 : index
        %1 = arith.muli %arg3, %c64 : index
        %c0_8 = arith.constant 0 : index
        %c16_9 = arith.constant 16 : index
        %c1_10 = arith.constant 1 : index
        scf.for %arg5 = %c0_8 to %c16_9 step %c1_10 {
          %c4 = arith.constant 4 : index
          %2 = arith.muli %arg5, %c4 : index
          %3 = arith.addi %1, %2 : index
          %c64_11 = arith.constant 64 : index
          %4 = arith.addi %3, %c64_11 : index
          memref.prefetch %arg1[%4, %0], read, locality<2>, data : memref<64x16xi8>
          %c1_12 = arith.constant 1 : index
          %5 = arith.addi %4, %c1_12 : index
          memref.prefetch %arg1[%5, %0], read, locality<2>, data : memref<64x16xi8>
          %c2 = arith.constant 2 : index
          %6 = arith.addi %4, %c2 : index
          memref.prefetch %arg1[%6, %0], read, locality<2>, data : memref<64x16xi8>
          %c3 = arith.constant 3 : index
          %7 = arith.addi %4, %c3 : index
          memref.prefetch %arg1[%7, %0], read, locality<2>, data : memref<64x16xi8>
          %8 = vector.load %arg1[%3, %0] : memref<64x16xi8>, vector<16xi8>
          %c1_13 = arith.constant 1 : index
          %9 = arith.addi %3, %c1_13 : index
          %10 = vector.load %arg1[%9, %0] : memref<64x16xi8>, vector<16xi8>
          %c2_14 = arith.constant 2 : index
          %11 = arith.addi %3, %c2_14 : index
          %12 = vector.load %arg1[%11, %0] : memref<64x16xi8>, vector<16xi8>
          %c3_15 = arith.constant 3 : index
          %13 = arith.addi %3, %c3_15 : index
          %14 = vector.load %arg1[%13, %0] : memref<64x16xi8>, vector<16xi8>
          %15 = vector.interleave %8, %12 : vector<16xi8> -> vector<32xi8>
          %16 = vector.interleave %10, %14 : vector<16xi8> -> vector<32xi8>
          %17 = vector.interleave %15, %16 : vector<32xi8> -> vector<64xi8>
          %c0_16 = arith.constant 0 : index
          %c16_17 = arith.constant 16 : index
          %18 = arith.muli %arg3, %c16_17 : index
          %19 = arith.addi %18, %arg5 : index
          %c0_18 = arith.constant 0 : index
          %c16_19 = arith.constant 16 : index
          %20 = arith.divui %c0_18, %c16_19 : index
          %21 = arith.addi %20, %arg4 : index
          %c16_20 = arith.constant 16 : index
          %22 = arith.muli %21, %c16_20 : index
          %23 = arith.addi %22, %19 : index
          %cst = arith.constant dense<-128> : vector<64xi8>
          %24 = arith.xori %17, %cst : vector<64xi8>
          %c64_21 = arith.constant 64 : index
          %25 = arith.muli %c0_16, %c64_21 : index
          vector.store %24, %alloc_0[%23, %25] : memref<16x64xi8>, vector<64xi8>
        }
      }
    }
    %c0_2 = arith.constant 0 : index
    %c1_3 = arith.constant 1 : index
    %c1_4 = arith.constant 1 : index
    scf.for %arg3 = %c0_2 to %c1_3 step %c1_4 {
      %c2 = arith.constant 2 : index
      %0 = arith.muli %arg3, %c2 : index
      %cst = arith.constant dense<1> : vector<64xi8>
      %cst_5 = arith.constant dense<0> : vector<16xi32>
      %c0_6 = arith.constant 0 : index
      %c1_7 = arith.constant 1 : index
      %c1_8 = arith.constant 1 : index
      %1:2 = scf.for %arg4 = %c0_6 to %c1_7 step %c1_8 iter_args(%arg5 = %cst_5, %arg6 = %cst_5) -> (vector<16xi32>, vector<16xi32>) {
        %c64 = arith.constant 64 : index
        %7 = arith.muli %arg4, %c64 : index
        %8 = vector.load %arg0[%0, %7] : memref<2x64xi8>, vector<64xi8>
        %9 = func.call @vpdpbusd_512(%arg5, %cst, %8) : (vector<16xi32>, vector<64xi8>, vector<64xi8>) -> vector<16xi32>
        %c1_14 = arith.constant 1 : index
        %10 = arith.addi %0, %c1_14 : index
        %c64_15 = arith.constant 64 : index
        %11 = arith.muli %arg4, %c64_15 : index
        %12 = vector.load %arg0[%10, %11] : memref<2x64xi8>, vector<64xi8>
        %13 = func.call @vpdpbusd_512(%arg6, %cst, %12) : (vector<16xi32>, vector<64xi8>, vector<64xi8>) -> vector<16xi32>
        scf.yield %9, %13 : vector<16xi32>, vector<16xi32>
      }
      %2 = vector.reduction <add>, %1#0 : vector<16xi32> into i32
      %3 = vector.reduction <add>, %1#1 : vector<16xi32> into i32
      %c-128_i32 = arith.constant -128 : i32
      %4 = arith.muli %2, %c-128_i32 : i32
      memref.store %4, %alloc[%0] : memref<2xi32>
      %c-128_i32_9 = arith.constant -128 : i32
      %5 = arith.muli %3, %c-128_i32_9 : i32
      %c1_10 = arith.constant 1 : index
      %6 = arith.addi %0, %c1_10 : index
      memref.store %5, %alloc[%6] : memref<2xi32>
      %c0_11 = arith.constant 0 : index
      %c1_12 = arith.constant 1 : index
      %c1_13 = arith.constant 1 : index
      scf.for %arg4 = %c0_11 to %c1_12 step %c1_13 {
        %7 = memref.load %alloc[%0] : memref<2xi32>
        %8 = vector.broadcast %7 : i32 to vector<16xi32>
        %c1_14 = arith.constant 1 : index
        %9 = arith.addi %0, %c1_14 : index
        %10 = memref.load %alloc[%9] : memref<2xi32>
        %11 = vector.broadcast %10 : i32 to vector<16xi32>
        %c0_15 = arith.constant 0 : index
        %c16 = arith.constant 16 : index
        %c1_16 = arith.constant 1 : index
        %12:2 = scf.for %arg5 = %c0_15 to %c16 step %c1_16 iter_args(%arg6 = %8, %arg7 = %11) -> (vector<16xi32>, vector<16xi32>) {
          %c0_19 = arith.constant 0 : index
          %c16_20 = arith.constant 16 : index
          %15 = arith.divui %c0_19, %c16_20 : index
          %16 = arith.addi %15, %arg4 : index
          %c16_21 = arith.constant 16 : index
          %17 = arith.muli %16, %c16_21 : index
          %18 = arith.addi %17, %arg5 : index
          %c0_22 = arith.constant 0 : index
          %19 = vector.load %alloc_0[%18, %c0_22] : memref<16x64xi8>, vector<64xi8>
          %c4 = arith.constant 4 : index
          %20 = arith.muli %arg5, %c4 : index
          %21 = vector.load %arg0[%0, %20] : memref<2x64xi8>, vector<4xi8>
          %22 = vector.bitcast %21 : vector<4xi8> to vector<1xi32>
          %23 = vector.broadcast %22 : vector<1xi32> to vector<16xi32>
          %24 = vector.bitcast %23 : vector<16xi32> to vector<64xi8>
          %25 = func.call @vpdpbusd_512(%arg6, %19, %24) : (vector<16xi32>, vector<64xi8>, vector<64xi8>) -> vector<16xi32>
          %c1_23 = arith.constant 1 : index
          %26 = arith.addi %0, %c1_23 : index
          %c4_24 = arith.constant 4 : index
          %27 = arith.muli %arg5, %c4_24 : index
          %28 = vector.load %arg0[%26, %27] : memref<2x64xi8>, vector<4xi8>
          %29 = vector.bitcast %28 : vector<4xi8> to vector<1xi32>
          %30 = vector.broadcast %29 : vector<1xi32> to vector<16xi32>
          %31 = vector.bitcast %30 : vector<16xi32> to vector<64xi8>
          %32 = func.call @vpdpbusd_512(%arg7, %19, %31) : (vector<16xi32>, vector<64xi8>, vector<64xi8>) -> vector<16xi32>
          scf.yield %25, %32 : vector<16xi32>, vector<16xi32>
        }
        %c16_17 = arith.constant 16 : index
        %13 = arith.muli %arg4, %c16_17 : index
        vector.store %12#0, %arg2[%0, %13] : memref<2x16xi32>, vector<16xi32>
        %c1_18 = arith.constant 1 : index
        %14 = arith.addi %0, %c1_18 : index
        vector.store %12#1, %arg2[%14, %13] : memref<2x16xi32>, vector<16xi32>
      }
    }
    return
  }
}
