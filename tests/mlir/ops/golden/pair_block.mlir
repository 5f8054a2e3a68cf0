module {
  func.func @f(%arg0: memref<2x64xbf16>, %arg1: memref<64x16xbf16>, %arg2: memref<2x16xf32>) {
    %cst = arith.constant 0.000000e+00 : f32
    %alloc = memref.alloc() {alignment = 64 : i64} : memref<32x32xbf16>
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %c1 = arith.constant 1 : index
    scf.for %arg3 = %c0 to %c2 step %c1 {
      %c0_3 = arith.constant 0 : index
      %c1_4 = arith.constant 1 : index
      %c1_5 = arith.constant 1 : index
      scf.for %arg4 = %c0_3 to %c1_4 step %c1_5 {
        %c16 = arith.constant 16 : index
        %0 = arith.muli %arg4, %c16 : index
        %c32 = arith.constant 32 : index
        %1 = arith.muli %arg3, %c32 : index
        %c0_6 = arith.constant 0 : index
        %c16_7 = arith.constant 16 : index
        %c1_8 = arith.constant 1 : index
        scf.for %arg5 = %c0_6 to %c16_7 step %c1_8 {
          %c2_9 = arith.constant 2 : index
          %2 = arith.muli %arg5, %c2_9 : index
          %3 = arith.addi %1, %2 : index
          %c32_10 = arith.constant 32 : index
          %4 = arith.addi %3, %c32_10 : index
          memref.prefetch %arg1[%4, %0], read, locality<2>, data : memref<64x16xbf16>
          %c1_11 = arith.constant 1 : index
          %5 = arith.addi %4, %c1_11 : index
          memref.prefetch %arg1[%5, %0], read, locality<2>, data : memref<64x16xbf16>
          %6 = vector.load %arg1[%3, %0] : memref<64x16xbf16>, vector<16xbf16>
          %c1_12 = arith.constant 1 : index
          %7 = arith.addi %3, %c1_12 : index
          %8 = vector.load %arg1[%7, %0] : memref<64x16xbf16>, vector<16xbf16>
          %9 = vector.interleave %6, %8 : vector<16xbf16> -> vector<32xbf16>
          %c0_13 = arith.constant 0 : index
          %c16_14 = arith.constant 16 : index
          %10 = arith.muli %arg3, %c16_14 : index
          %11 = arith.addi %10, %arg5 : index
          %c0_15 = arith.constant 0 : index
          %c16_16 = arith.constant 16 : index
          %12 = arith.divui %c0_15, %c16_16 : index
          %13 = arith.addi %12, %arg4 : index
          %c32_17 = arith.constant 32 : index
          %14 = arith.muli %13, %c32_17 : index
          %15 = arith.addi %14, %11 : index
          %c32_18 = arith.constant 32 : index
          %16 = arith.muli %c0_13, %c32_18 : index
          vector.store %9, %alloc[%15, %16] : memref<32x32xbf16>, vector<32xbf16>
        }
      }
    }
    %c0_0 = arith.constant 0 : index
    %c1_1 = arith.constant 1 : index
    %c1_2 = arith.constant 1 : index
    scf.for %arg3 = %c0_0 to %c1_1 step %c1_2 {
      %c2_3 = arith.constant 2 : index
      %0 = arith.muli %arg3, %c2_3 : index
      %c0_4 = arith.constant 0 : index
      %c1_5 = arith.constant 1 : index
      %c1_6 = arith.constant 1 : index
      scf.for %arg4 = %c0_4 to %c1_5 step %c1_6 {
        %cst_7 = arith.constant dense<0.000000e+00> : vector<16xf32>
        %cst_8 = arith.constant dense<0.000000e+00> : vector<16xf32>
        %c0_9 = arith.constant 0 : index
        %c32 = arith.constant 32 : index
        %c1_10 = arith.constant 1 : index
        %1:2 = scf.for %arg5 = %c0_9 to %c32 step %c1_10 iter_args(%arg6 = %cst_7, %arg7 = %cst_8) -> (vector<16xf32>, vector<16xf32>) {
          %c0_12 = arith.constant 0 : index
          %c16_13 = arith.constant 16 : index
          %4 = arith.divui %c0_12, %c16_13 : index
          %5 = arith.addi %4, %arg4 : index
          %c32_14 = arith.constant 32 : index
          %6 = arith.muli %5, %c32_14 : index
          %7 = arith.addi %6, %arg5 : index
          %c0_15 = arith.constant 0 : index
          %8 = vector.load %alloc[%7, %c0_15] : memref<32x32xbf16>, vector<32xbf16>
          %c2_16 = arith.constant 2 : index
          %9 = arith.muli %arg5, %c2_16 : index
          %10 = vector.load %arg0[%0, %9] : memref<2x64xbf16>, vector<2xbf16>
          %11 = vector.bitcast %10 : vector<2xbf16> to vector<1xi32>
          %12 = vector.broadcast %11 : vector<1xi32> to vector<16xi32>
          %13 = vector.bitcast %8 : vector<32xbf16> to vector<16xi32>
          %cst_17 = arith.constant dense<16> : vector<16xi32>
          %14 = arith.shli %12, %cst_17 : vector<16xi32>
          %15 = vector.bitcast %14 : vector<16xi32> to vector<16xf32>
          %cst_18 = arith.constant dense<16> : vector<16xi32>
          %16 = arith.shli %13, %cst_18 : vector<16xi32>
          %17 = vector.bitcast %16 : vector<16xi32> to vector<16xf32>
          %18 = vector.fma %15, %17, %arg6 : vector<16xf32>
          %cst_19 = arith.constant dense<-65536> : vector<16xi32>
          %19 = arith.andi %12, %cst_19 : vector<16xi32>
          %20 = vector.bitcast %19 : vector<16xi32> to vector<16xf32>
          %cst_20 = arith.constant dense<-65536> : vector<16xi32>
          %21 = arith.andi %13, %cst_20 : vector<16xi32>
          %22 = vector.bitcast %21 : vector<16xi32> to vector<16xf32>
          %23 = vector.fma %20, %22, %18 : vector<16xf32>
          %c1_21 = arith.constant 1 : index
          %24 = arith.addi %0, %c1_21 : index
          %c2_22 = arith.constant 2 : index
          %25 = arith.muli %arg5, %c2_22 : index
          %26 = vector.load %arg0[%24, %25] : memref<2x64xbf16>, vector<2xbf16>
          %27 = vector.bitcast %26 : vector<2xbf16> to vector<1xi32>
          %28 = vector.broadcast %27 : vector<1xi32> to vector<16xi32>
          %29 = vector.bitcast %8 : vector<32xbf16> to vector<16xi32>
          %cst_23 = arith.constant dense<16> : vector<16xi32>
          %30 = arith.shli %28, %cst_23 : vector<16xi32>
          %31 = vector.bitcast %30 : vector<16xi32> to vector<16xf32>
          %cst_24 = arith.constant dense<16> : vector<16xi32>
          %32 = arith.shli %29, %cst_24 : vector<16xi32>
          %33 = vector.bitcast %32 : vector<16xi32> to vector<16xf32>
          %34 = vector.fma %31, %33, %arg7 : vector<16xf32>
          %cst_25 = arith.constant dense<-65536> : vector<16xi32>
          %35 = arith.andi %28, %cst_25 : vector<16xi32>
          %36 = vector.bitcast %35 : vector<16xi32> to vector<16xf32>
          %cst_26 = arith.constant dense<-65536> : vector<16xi32>
          %37 = arith.andi %29, %cst_26 : vector<16xi32>
          %38 = vector.bitcast %37 : vector<16xi32> to vector<16xf32>
          %39 = vector.fma %36, %38, %34 : vector<16xf32>
          scf.yield %23, %39 : vector<16xf32>, vector<16xf32>
        }
        %c16 = arith.constant 16 : index
        %2 = arith.muli %arg4, %c16 : index
        vector.store %1#0, %arg2[%0, %2] : memref<2x16xf32>, vector<16xf32>
        %c1_11 = arith.constant 1 : index
        %3 = arith.addi %0, %c1_11 : index
        vector.store %1#1, %arg2[%3, %2] : memref<2x16xf32>, vector<16xf32>
      }
    }
    return
  }
}
