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
          %4 = vector.load %arg1[%3, %0] : memref<64x16xbf16>, vector<16xbf16>
          %c1_10 = arith.constant 1 : index
          %5 = arith.addi %3, %c1_10 : index
          %6 = vector.load %arg1[%5, %0] : memref<64x16xbf16>, vector<16xbf16>
          %7 = vector.interleave %4, %6 : vector<16xbf16> -> vector<32xbf16>
          %c0_11 = arith.constant 0 : index
          %c16_12 = arith.constant 16 : index
          %8 = arith.muli %arg3, %c16_12 : index
          %9 = arith.addi %8, %arg5 : index
          %c0_13 = arith.constant 0 : index
          %c16_14 = arith.constant 16 : index
          %10 = arith.divui %c0_13, %c16_14 : index
          %11 = arith.addi %10, %arg4 : index
          %c32_15 = arith.constant 32 : index
          %12 = arith.muli %11, %c32_15 : index
          %13 = arith.addi %12, %9 : index
          %c32_16 = arith.constant 32 : index
          %14 = arith.muli %c0_11, %c32_16 : index
          vector.store %7, %alloc[%13, %14] : memref<32x32xbf16>, vector<32xbf16>
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
        %c0_8 = arith.constant 0 : index
        %c32 = arith.constant 32 : index
        %c1_9 = arith.constant 1 : index
        %1:2 = scf.for %arg5 = %c0_8 to %c32 step %c1_9 iter_args(%arg6 = %cst_7, %arg7 = %cst_7) -> (vector<16xf32>, vector<16xf32>) {
          %c0_11 = arith.constant 0 : index
          %c16_12 = arith.constant 16 : index
          %4 = arith.divui %c0_11, %c16_12 : index
          %5 = arith.addi %4, %arg4 : index
          %c32_13 = arith.constant 32 : index
          %6 = arith.muli %5, %c32_13 : index
          %7 = arith.addi %6, %arg5 : index
          %c0_14 = arith.constant 0 : index
          %8 = vector.load %alloc[%7, %c0_14] : memref<32x32xbf16>, vector<32xbf16>
          %c2_15 = arith.constant 2 : index
          %9 = arith.muli %arg5, %c2_15 : index
          %10 = memref.load %arg0[%0, %9] : memref<2x64xbf16>
          %c1_16 = arith.constant 1 : index
          %11 = arith.addi %9, %c1_16 : index
          %12 = memref.load %arg0[%0, %11] : memref<2x64xbf16>
          %13 = arith.extf %10 : bf16 to f32
          %14 = arith.extf %12 : bf16 to f32
          %15 = vector.broadcast %13 : f32 to vector<16xf32>
          %16 = vector.broadcast %14 : f32 to vector<16xf32>
          %17 = vector.bitcast %8 : vector<32xbf16> to vector<16xi32>
          %cst_17 = arith.constant dense<16> : vector<16xi32>
          %18 = arith.shli %17, %cst_17 : vector<16xi32>
          %19 = vector.bitcast %18 : vector<16xi32> to vector<16xf32>
          %20 = vector.fma %15, %19, %arg6 : vector<16xf32>
          %cst_18 = arith.constant dense<-65536> : vector<16xi32>
          %21 = arith.andi %17, %cst_18 : vector<16xi32>
          %22 = vector.bitcast %21 : vector<16xi32> to vector<16xf32>
          %23 = vector.fma %16, %22, %20 : vector<16xf32>
          %c1_19 = arith.constant 1 : index
          %24 = arith.addi %0, %c1_19 : index
          %c2_20 = arith.constant 2 : index
          %25 = arith.muli %arg5, %c2_20 : index
          %26 = memref.load %arg0[%24, %25] : memref<2x64xbf16>
          %c1_21 = arith.constant 1 : index
          %27 = arith.addi %25, %c1_21 : index
          %28 = memref.load %arg0[%24, %27] : memref<2x64xbf16>
          %29 = arith.extf %26 : bf16 to f32
          %30 = arith.extf %28 : bf16 to f32
          %31 = vector.broadcast %29 : f32 to vector<16xf32>
          %32 = vector.broadcast %30 : f32 to vector<16xf32>
          %33 = vector.bitcast %8 : vector<32xbf16> to vector<16xi32>
          %cst_22 = arith.constant dense<16> : vector<16xi32>
          %34 = arith.shli %33, %cst_22 : vector<16xi32>
          %35 = vector.bitcast %34 : vector<16xi32> to vector<16xf32>
          %36 = vector.fma %31, %35, %arg7 : vector<16xf32>
          %cst_23 = arith.constant dense<-65536> : vector<16xi32>
          %37 = arith.andi %33, %cst_23 : vector<16xi32>
          %38 = vector.bitcast %37 : vector<16xi32> to vector<16xf32>
          %39 = vector.fma %32, %38, %36 : vector<16xf32>
          scf.yield %23, %39 : vector<16xf32>, vector<16xf32>
        }
        %c16 = arith.constant 16 : index
        %2 = arith.muli %arg4, %c16 : index
        vector.store %1#0, %arg2[%0, %2] : memref<2x16xf32>, vector<16xf32>
        %c1_10 = arith.constant 1 : index
        %3 = arith.addi %0, %c1_10 : index
        vector.store %1#1, %arg2[%3, %2] : memref<2x16xf32>, vector<16xf32>
      }
    }
    return
  }
}
