module {
  func.func @f(%arg0: memref<2x64xbf16>, %arg1: memref<64x16xbf16>, %arg2: memref<2x16xf32>) {
    %cst = arith.constant 0.000000e+00 : f32
    %alloc = memref.alloc() {alignment = 64 : i64} : memref<2x96xf32>
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
          %c32_11 = arith.constant 32 : index
          %4 = arith.addi %3, %c32_11 : index
          memref.prefetch %arg1[%4, %0], read, locality<2>, data : memref<64x16xbf16>
          %c1_12 = arith.constant 1 : index
          %5 = arith.addi %4, %c1_12 : index
          memref.prefetch %arg1[%5, %0], read, locality<2>, data : memref<64x16xbf16>
          %6 = vector.load %arg1[%3, %0] : memref<64x16xbf16>, vector<16xbf16>
          %c1_13 = arith.constant 1 : index
          %7 = arith.addi %3, %c1_13 : index
          %8 = vector.load %arg1[%7, %0] : memref<64x16xbf16>, vector<16xbf16>
          %9 = vector.interleave %6, %8 : vector<16xbf16> -> vector<32xbf16>
          %c0_14 = arith.constant 0 : index
          %c16_15 = arith.constant 16 : index
          %10 = arith.muli %arg3, %c16_15 : index
          %11 = arith.addi %10, %arg5 : index
          %c0_16 = arith.constant 0 : index
          %c16_17 = arith.constant 16 : index
          %12 = arith.divui %c0_16, %c16_17 : index
          %13 = arith.addi %12, %arg4 : index
          %c32_18 = arith.constant 32 : index
          %14 = arith.muli %13, %c32_18 : index
          %15 = arith.addi %14, %11 : index
          %c32_19 = arith.constant 32 : index
          %16 = arith.muli %c0_14, %c32_19 : index
          vector.store %9, %alloc_0[%15, %16] : memref<32x32xbf16>, vector<32xbf16>
        }
      }
    }
    %c0_1 = arith.constant 0 : index
    %c1_2 = arith.constant 1 : index
    %c1_3 = arith.constant 1 : index
    scf.for %arg3 = %c0_1 to %c1_2 step %c1_3 {
      %c2_4 = arith.constant 2 : index
      %0 = arith.muli %arg3, %c2_4 : index
      %c0_5 = arith.constant 0 : index
      %c2_6 = arith.constant 2 : index
      %c1_7 = arith.constant 1 : index
      scf.for %arg4 = %c0_5 to %c2_6 step %c1_7 {
        %c0_11 = arith.constant 0 : index
        %c2_12 = arith.constant 2 : index
        %c1_13 = arith.constant 1 : index
        scf.for %arg5 = %c0_11 to %c2_12 step %c1_13 {
          %1 = arith.addi %0, %arg4 : index
          %c32 = arith.constant 32 : index
          %2 = arith.muli %arg5, %c32 : index
          %3 = vector.load %arg0[%1, %2] : memref<2x64xbf16>, vector<32xbf16>
          %4 = vector.bitcast %3 : vector<32xbf16> to vector<16xi32>
          %c0_14 = arith.constant 0 : index
          %5 = arith.addi %c0_14, %arg4 : index
          %c16 = arith.constant 16 : index
          %6 = arith.muli %arg5, %c16 : index
          %c48 = arith.constant 48 : index
          %7 = arith.addi %6, %c48 : index
          %cst_15 = arith.constant dense<16> : vector<16xi32>
          %8 = arith.shli %4, %cst_15 : vector<16xi32>
          %9 = vector.bitcast %8 : vector<16xi32> to vector<16xf32>
          vector.store %9, %alloc[%5, %6] : memref<2x96xf32>, vector<16xf32>
          %cst_16 = arith.constant dense<-65536> : vector<16xi32>
          %10 = arith.andi %4, %cst_16 : vector<16xi32>
          %11 = vector.bitcast %10 : vector<16xi32> to vector<16xf32>
          vector.store %11, %alloc[%5, %7] : memref<2x96xf32>, vector<16xf32>
        }
      }
      %c0_8 = arith.constant 0 : index
      %c1_9 = arith.constant 1 : index
      %c1_10 = arith.constant 1 : index
      scf.for %arg4 = %c0_8 to %c1_9 step %c1_10 {
        %cst_11 = arith.constant dense<0.000000e+00> : vector<16xf32>
        %cst_12 = arith.constant dense<0.000000e+00> : vector<16xf32>
        %c0_13 = arith.constant 0 : index
        %c32 = arith.constant 32 : index
        %c1_14 = arith.constant 1 : index
        %1:2 = scf.for %arg5 = %c0_13 to %c32 step %c1_14 iter_args(%arg6 = %cst_11, %arg7 = %cst_12) -> (vector<16xf32>, vector<16xf32>) {
          %c0_16 = arith.constant 0 : index
          %c16_17 = arith.constant 16 : index
          %4 = arith.divui %c0_16, %c16_17 : index
          %5 = arith.addi %4, %arg4 : index
          %c32_18 = arith.constant 32 : index
          %6 = arith.muli %5, %c32_18 : index
          %7 = arith.addi %6, %arg5 : index
          %c0_19 = arith.constant 0 : index
          %8 = vector.load %alloc_0[%7, %c0_19] : memref<32x32xbf16>, vector<32xbf16>
          %c48 = arith.constant 48 : index
          %9 = arith.addi %arg5, %c48 : index
          %c0_20 = arith.constant 0 : index
          %10 = memref.load %alloc[%c0_20, %arg5] : memref<2x96xf32>
          %c0_21 = arith.constant 0 : index
          %11 = memref.load %alloc[%c0_21, %9] : memref<2x96xf32>
          %12 = vector.broadcast %10 : f32 to vector<16xf32>
          %13 = vector.broadcast %11 : f32 to vector<16xf32>
          %14 = vector.bitcast %8 : vector<32xbf16> to vector<16xi32>
          %cst_22 = arith.constant dense<16> : vector<16xi32>
          %15 = arith.shli %14, %cst_22 : vector<16xi32>
          %cst_23 = arith.constant dense<-65536> : vector<16xi32>
          %16 = arith.andi %14, %cst_23 : vector<16xi32>
          %17 = vector.bitcast %15 : vector<16xi32> to vector<16xf32>
          %18 = vector.fma %12, %17, %arg6 : vector<16xf32>
          %19 = vector.bitcast %16 : vector<16xi32> to vector<16xf32>
          %20 = vector.fma %13, %19, %18 : vector<16xf32>
          %c48_24 = arith.constant 48 : index
          %21 = arith.addi %arg5, %c48_24 : index
          %c0_25 = arith.constant 0 : index
          %c1_26 = arith.constant 1 : index
          %22 = arith.addi %c0_25, %c1_26 : index
          %23 = memref.load %alloc[%22, %arg5] : memref<2x96xf32>
          %c0_27 = arith.constant 0 : index
          %c1_28 = arith.constant 1 : index
          %24 = arith.addi %c0_27, %c1_28 : index
          %25 = memref.load %alloc[%24, %21] : memref<2x96xf32>
          %26 = vector.broadcast %23 : f32 to vector<16xf32>
          %27 = vector.broadcast %25 : f32 to vector<16xf32>
          %28 = vector.bitcast %8 : vector<32xbf16> to vector<16xi32>
          %cst_29 = arith.constant dense<16> : vector<16xi32>
          %29 = arith.shli %28, %cst_29 : vector<16xi32>
          %cst_30 = arith.constant dense<-65536> : vector<16xi32>
          %30 = arith.andi %28, %cst_30 : vector<16xi32>
          %31 = vector.bitcast %29 : vector<16xi32> to vector<16xf32>
          %32 = vector.fma %26, %31, %arg7 : vector<16xf32>
          %33 = vector.bitcast %30 : vector<16xi32> to vector<16xf32>
          %34 = vector.fma %27, %33, %32 : vector<16xf32>
          scf.yield %20, %34 : vector<16xf32>, vector<16xf32>
        }
        %c16 = arith.constant 16 : index
        %2 = arith.muli %arg4, %c16 : index
        vector.store %1#0, %arg2[%0, %2] : memref<2x16xf32>, vector<16xf32>
        %c1_15 = arith.constant 1 : index
        %3 = arith.addi %0, %c1_15 : index
        vector.store %1#1, %arg2[%3, %2] : memref<2x16xf32>, vector<16xf32>
      }
    }
    return
  }
}
