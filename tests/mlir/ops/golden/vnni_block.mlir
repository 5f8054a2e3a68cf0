module {
  func.func private @vpdpbusd_512(vector<16xi32>, vector<64xi8>, vector<64xi8>) -> vector<16xi32>
  func.func @f(%arg0: memref<2x64xi8>, %arg1: memref<64x16xi8>, %arg2: memref<2x16xi32>) {
    %c0_i32 = arith.constant 0 : i32
    %alloc = memref.alloc() {alignment = 64 : i64} : memref<2x32xi32>
    %alloc_0 = memref.alloc() {alignment = 64 : i64} : memref<16x64xi8>
    %alloc_1 = memref.alloc() {alignment = 64 : i64} : memref<1x16xi32>
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c1_2 = arith.constant 1 : index
    scf.for %arg3 = %c0 to %c1 step %c1_2 {
      %c0_9 = arith.constant 0 : index
      %c1_10 = arith.constant 1 : index
      %c1_11 = arith.constant 1 : index
      scf.for %arg4 = %c0_9 to %c1_10 step %c1_11 {
        %c16 = arith.constant 16 : index
        %0 = arith.muli %arg4, %c16 : index
        %c64 = arith.constant 64 : index
        %1 = arith.muli %arg3, %c64 : index
        %c0_12 = arith.constant 0 : index
        %c16_13 = arith.constant 16 : index
        %c1_14 = arith.constant 1 : index
        scf.for %arg5 = %c0_12 to %c16_13 step %c1_14 {
          %c4 = arith.constant 4 : index
          %2 = arith.muli %arg5, %c4 : index
          %3 = arith.addi %1, %2 : index
          %4 = vector.load %arg1[%3, %0] : memref<64x16xi8>, vector<16xi8>
          %c1_15 = arith.constant 1 : index
          %5 = arith.addi %3, %c1_15 : index
          %6 = vector.load %arg1[%5, %0] : memref<64x16xi8>, vector<16xi8>
          %c2 = arith.constant 2 : index
          %7 = arith.addi %3, %c2 : index
          %8 = vector.load %arg1[%7, %0] : memref<64x16xi8>, vector<16xi8>
          %c3 = arith.constant 3 : index
          %9 = arith.addi %3, %c3 : index
          %10 = vector.load %arg1[%9, %0] : memref<64x16xi8>, vector<16xi8>
          %11 = vector.interleave %4, %8 : vector<16xi8> -> vector<32xi8>
          %12 = vector.interleave %6, %10 : vector<16xi8> -> vector<32xi8>
          %13 = vector.interleave %11, %12 : vector<32xi8> -> vector<64xi8>
          %c0_16 = arith.constant 0 : index
          %c16_17 = arith.constant 16 : index
          %14 = arith.muli %arg3, %c16_17 : index
          %15 = arith.addi %14, %arg5 : index
          %c16_18 = arith.constant 16 : index
          %16 = arith.muli %arg4, %c16_18 : index
          %17 = arith.addi %16, %15 : index
          %18 = arith.addi %17, %c0_16 : index
          %c0_19 = arith.constant 0 : index
          vector.store %13, %alloc_0[%18, %c0_19] : memref<16x64xi8>, vector<64xi8>
        }
      }
    }
    %c1_3 = arith.constant 1 : index
    %c0_4 = arith.constant 0 : index
    %c1_5 = arith.constant 1 : index
    scf.for %arg3 = %c0_4 to %c1_3 step %c1_5 {
      %cst = arith.constant dense<1> : vector<64xi8>
      %cst_9 = arith.constant dense<0> : vector<16xi32>
      %c0_10 = arith.constant 0 : index
      %c16 = arith.constant 16 : index
      %c1_11 = arith.constant 1 : index
      %0 = scf.for %arg4 = %c0_10 to %c16 step %c1_11 iter_args(%arg5 = %cst_9) -> (vector<16xi32>) {
        %c16_14 = arith.constant 16 : index
        %2 = arith.muli %arg3, %c16_14 : index
        %3 = arith.addi %2, %arg4 : index
        %c0_15 = arith.constant 0 : index
        %4 = vector.load %alloc_0[%3, %c0_15] : memref<16x64xi8>, vector<64xi8>
        %5 = func.call @vpdpbusd_512(%arg5, %cst, %4) : (vector<16xi32>, vector<64xi8>, vector<64xi8>) -> vector<16xi32>
        scf.yield %5 : vector<16xi32>
      }
      %cst_12 = arith.constant dense<-128> : vector<16xi32>
      %1 = arith.muli %0, %cst_12 : vector<16xi32>
      %c0_13 = arith.constant 0 : index
      vector.store %1, %alloc_1[%arg3, %c0_13] : memref<1x16xi32>, vector<16xi32>
    }
    %c0_6 = arith.constant 0 : index
    %c1_7 = arith.constant 1 : index
    %c1_8 = arith.constant 1 : index
    scf.for %arg3 = %c0_6 to %c1_7 step %c1_8 {
      %c2 = arith.constant 2 : index
      %0 = arith.muli %arg3, %c2 : index
      %c0_9 = arith.constant 0 : index
      %c2_10 = arith.constant 2 : index
      %c1_11 = arith.constant 1 : index
      scf.for %arg4 = %c0_9 to %c2_10 step %c1_11 {
        %c0_15 = arith.constant 0 : index
        %c1_16 = arith.constant 1 : index
        %c1_17 = arith.constant 1 : index
        scf.for %arg5 = %c0_15 to %c1_16 step %c1_17 {
          %1 = arith.addi %0, %arg4 : index
          %c64 = arith.constant 64 : index
          %2 = arith.muli %arg5, %c64 : index
          %3 = vector.load %arg0[%1, %2] : memref<2x64xi8>, vector<64xi8>
          %cst = arith.constant dense<-128> : vector<64xi8>
          %4 = arith.xori %3, %cst : vector<64xi8>
          %5 = vector.bitcast %4 : vector<64xi8> to vector<16xi32>
          %c16 = arith.constant 16 : index
          %6 = arith.muli %arg5, %c16 : index
          vector.store %5, %alloc[%arg4, %6] : memref<2x32xi32>, vector<16xi32>
        }
      }
      %c0_12 = arith.constant 0 : index
      %c1_13 = arith.constant 1 : index
      %c1_14 = arith.constant 1 : index
      scf.for %arg4 = %c0_12 to %c1_13 step %c1_14 {
        %c0_15 = arith.constant 0 : index
        %1 = vector.load %alloc_1[%arg4, %c0_15] : memref<1x16xi32>, vector<16xi32>
        %c0_16 = arith.constant 0 : index
        %c16 = arith.constant 16 : index
        %c1_17 = arith.constant 1 : index
        %2:2 = scf.for %arg5 = %c0_16 to %c16 step %c1_17 iter_args(%arg6 = %1, %arg7 = %1) -> (vector<16xi32>, vector<16xi32>) {
          %c16_20 = arith.constant 16 : index
          %7 = arith.muli %arg4, %c16_20 : index
          %8 = arith.addi %7, %arg5 : index
          %c0_21 = arith.constant 0 : index
          %9 = vector.load %alloc_0[%8, %c0_21] : memref<16x64xi8>, vector<64xi8>
          %c0_22 = arith.constant 0 : index
          %10 = memref.load %alloc[%c0_22, %arg5] : memref<2x32xi32>
          %11 = vector.broadcast %10 : i32 to vector<16xi32>
          %12 = vector.bitcast %11 : vector<16xi32> to vector<64xi8>
          %13 = func.call @vpdpbusd_512(%arg6, %12, %9) : (vector<16xi32>, vector<64xi8>, vector<64xi8>) -> vector<16xi32>
          %c1_23 = arith.constant 1 : index
          %14 = memref.load %alloc[%c1_23, %arg5] : memref<2x32xi32>
          %15 = vector.broadcast %14 : i32 to vector<16xi32>
          %16 = vector.bitcast %15 : vector<16xi32> to vector<64xi8>
          %17 = func.call @vpdpbusd_512(%arg7, %16, %9) : (vector<16xi32>, vector<64xi8>, vector<64xi8>) -> vector<16xi32>
          scf.yield %13, %17 : vector<16xi32>, vector<16xi32>
        }
        %c16_18 = arith.constant 16 : index
        %3 = arith.muli %arg4, %c16_18 : index
        %4 = vector.constant_mask [16] : vector<16xi1>
        vector.maskedstore %arg2[%0, %3], %4, %2#0 : memref<2x16xi32>, vector<16xi1>, vector<16xi32>
        %c1_19 = arith.constant 1 : index
        %5 = arith.addi %0, %c1_19 : index
        %6 = vector.constant_mask [16] : vector<16xi1>
        vector.maskedstore %arg2[%5, %3], %6, %2#1 : memref<2x16xi32>, vector<16xi1>, vector<16xi32>
      }
    }
    return
  }
}
