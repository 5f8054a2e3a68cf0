module {
  func.func private @vpdpbusd_512(vector<16xi32>, vector<64xi8>, vector<64xi8>) -> vector<16xi32>
  func.func @f(%arg0: memref<2x64xf32>, %arg1: memref<8x64xi8> {tuner.bits = 4 : i64, tuner.depth = 8 : i64, tuner.interleave = 8 : i64, tuner.nibbles = "fours", tuner.order = array<i64: 1, 0>, tuner.packing = 16 : i64, tuner.weight}, %arg2: memref<2x16xf16> {tuner.order = array<i64: 1, 0>, tuner.packing = 16 : i64, tuner.weight}, %arg3: memref<2x16xf32>) attributes {tuner.bytes = 1216 : i64, tuner.contractions = 1 : i64, tuner.copy = 0 : i64, tuner.loops = array<i64: 2, 16>, tuner.quantization = "i4-g32-f16-a8group", tuner.transposed = 0 : i64, tuner.weights = 1 : i64} {
    %alloc = memref.alloc() {alignment = 64 : i64} : memref<2x128xi8>
    %alloc_0 = memref.alloc() {alignment = 64 : i64} : memref<2x2xf32>
    %alloc_1 = memref.alloc() {alignment = 64 : i64} : memref<2x2xi32>
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %c1 = arith.constant 1 : index
    scf.for %arg4 = %c0 to %c2 step %c1 {
      %c0_5 = arith.constant 0 : index
      %c2_6 = arith.constant 2 : index
      %c1_7 = arith.constant 1 : index
      scf.for %arg5 = %c0_5 to %c2_6 step %c1_7 {
        %c32 = arith.constant 32 : index
        %0 = arith.muli %arg5, %c32 : index
        %cst = arith.constant dense<0.000000e+00> : vector<16xf32>
        %c0_8 = arith.constant 0 : index
        %c2_9 = arith.constant 2 : index
        %c1_10 = arith.constant 1 : index
        %1 = scf.for %arg6 = %c0_8 to %c2_9 step %c1_10 iter_args(%arg7 = %cst) -> (vector<16xf32>) {
          %c16 = arith.constant 16 : index
          %9 = arith.muli %arg6, %c16 : index
          %10 = arith.addi %0, %9 : index
          %11 = vector.load %arg0[%arg4, %10] : memref<2x64xf32>, vector<16xf32>
          %12 = math.absf %11 : vector<16xf32>
          %13 = arith.maximumf %arg7, %12 : vector<16xf32>
          scf.yield %13 : vector<16xf32>
        }
        %2 = vector.reduction <maximumf>, %1 : vector<16xf32> into f32
        %cst_11 = arith.constant 1.270000e+02 : f32
        %cst_12 = arith.constant 1.000000e-30 : f32
        %3 = arith.divf %2, %cst_11 : f32
        memref.store %3, %alloc_0[%arg4, %arg5] : memref<2x2xf32>
        %4 = arith.cmpf olt, %2, %cst_12 : f32
        %cst_13 = arith.constant 0.000000e+00 : f32
        %5 = arith.divf %cst_11, %2 : f32
        %6 = arith.select %4, %cst_13, %5 : f32
        %cst_14 = arith.constant dense<0> : vector<16xi32>
        %c0_15 = arith.constant 0 : index
        %c2_16 = arith.constant 2 : index
        %c1_17 = arith.constant 1 : index
        %7 = scf.for %arg6 = %c0_15 to %c2_16 step %c1_17 iter_args(%arg7 = %cst_14) -> (vector<16xi32>) {
          %c16 = arith.constant 16 : index
          %9 = arith.muli %arg6, %c16 : index
          %10 = arith.addi %0, %9 : index
          %11 = vector.load %arg0[%arg4, %10] : memref<2x64xf32>, vector<16xf32>
          %12 = vector.broadcast %6 : f32 to vector<16xf32>
          %13 = arith.mulf %11, %12 : vector<16xf32>
          %14 = math.roundeven %13 : vector<16xf32>
          %15 = arith.fptosi %14 : vector<16xf32> to vector<16xi32>
          %16 = arith.trunci %15 : vector<16xi32> to vector<16xi8>
          vector.store %16, %alloc[%arg4, %10] : memref<2x128xi8>, vector<16xi8>
          %17 = arith.addi %arg7, %15 : vector<16xi32>
          scf.yield %17 : vector<16xi32>
        }
        %8 = vector.reduction <add>, %7 : vector<16xi32> into i32
        memref.store %8, %alloc_1[%arg4, %arg5] : memref<2x2xi32>
      }
    }
    %c0_2 = arith.constant 0 : index
    %c1_3 = arith.constant 1 : index
    %c1_4 = arith.constant 1 : index
    scf.for %arg4 = %c0_2 to %c1_3 step %c1_4 {
      %c0_5 = arith.constant 0 : index
      %c1_6 = arith.constant 1 : index
      %c1_7 = arith.constant 1 : index
      scf.for %arg5 = %c0_5 to %c1_6 step %c1_7 {
        %c2_8 = arith.constant 2 : index
        %0 = arith.muli %arg5, %c2_8 : index
        %c1_9 = arith.constant 1 : index
        %1 = arith.addi %0, %c1_9 : index
        %cst = arith.constant dense<0.000000e+00> : vector<16xf32>
        %c0_10 = arith.constant 0 : index
        %c2_11 = arith.constant 2 : index
        %c1_12 = arith.constant 1 : index
        %2:2 = scf.for %arg6 = %c0_10 to %c2_11 step %c1_12 iter_args(%arg7 = %cst, %arg8 = %cst) -> (vector<16xf32>, vector<16xf32>) {
          %c8 = arith.constant 8 : index
          %4 = arith.muli %arg4, %c8 : index
          %c4 = arith.constant 4 : index
          %5 = arith.muli %arg6, %c4 : index
          %6 = arith.addi %4, %5 : index
          %c32 = arith.constant 32 : index
          %7 = arith.muli %arg6, %c32 : index
          %8 = memref.load %alloc_1[%0, %arg6] : memref<2x2xi32>
          %c-8_i32 = arith.constant -8 : i32
          %9 = arith.muli %8, %c-8_i32 : i32
          %10 = vector.broadcast %9 : i32 to vector<16xi32>
          %11 = memref.load %alloc_1[%1, %arg6] : memref<2x2xi32>
          %c-8_i32_13 = arith.constant -8 : i32
          %12 = arith.muli %11, %c-8_i32_13 : i32
          %13 = vector.broadcast %12 : i32 to vector<16xi32>
          %c0_14 = arith.constant 0 : index
          %c4_15 = arith.constant 4 : index
          %c1_16 = arith.constant 1 : index
          %14:2 = scf.for %arg9 = %c0_14 to %c4_15 step %c1_16 iter_args(%arg10 = %10, %arg11 = %13) -> (vector<16xi32>, vector<16xi32>) {
            %29 = arith.addi %6, %arg9 : index
            %c0_19 = arith.constant 0 : index
            %30 = vector.load %arg1[%29, %c0_19] : memref<8x64xi8>, vector<64xi8>
            %31 = vector.bitcast %30 : vector<64xi8> to vector<32xi16>
            %cst_20 = arith.constant dense<4> : vector<32xi16>
            %32 = arith.shrui %31, %cst_20 : vector<32xi16>
            %33 = vector.bitcast %32 : vector<32xi16> to vector<64xi8>
            %cst_21 = arith.constant dense<15> : vector<64xi8>
            %34 = arith.andi %30, %cst_21 : vector<64xi8>
            %cst_22 = arith.constant dense<15> : vector<64xi8>
            %35 = arith.andi %33, %cst_22 : vector<64xi8>
            %c8_23 = arith.constant 8 : index
            %36 = arith.muli %arg9, %c8_23 : index
            %37 = arith.addi %7, %36 : index
            %38 = vector.load %alloc[%0, %37] : memref<2x128xi8>, vector<4xi8>
            %39 = vector.bitcast %38 : vector<4xi8> to vector<1xi32>
            %40 = vector.broadcast %39 : vector<1xi32> to vector<16xi32>
            %41 = vector.bitcast %40 : vector<16xi32> to vector<64xi8>
            %42 = func.call @vpdpbusd_512(%arg10, %34, %41) : (vector<16xi32>, vector<64xi8>, vector<64xi8>) -> vector<16xi32>
            %43 = vector.load %alloc[%1, %37] : memref<2x128xi8>, vector<4xi8>
            %44 = vector.bitcast %43 : vector<4xi8> to vector<1xi32>
            %45 = vector.broadcast %44 : vector<1xi32> to vector<16xi32>
            %46 = vector.bitcast %45 : vector<16xi32> to vector<64xi8>
            %47 = func.call @vpdpbusd_512(%arg11, %34, %46) : (vector<16xi32>, vector<64xi8>, vector<64xi8>) -> vector<16xi32>
            %c4_24 = arith.constant 4 : index
            %48 = arith.addi %37, %c4_24 : index
            %49 = vector.load %alloc[%0, %48] : memref<2x128xi8>, vector<4xi8>
            %50 = vector.bitcast %49 : vector<4xi8> to vector<1xi32>
            %51 = vector.broadcast %50 : vector<1xi32> to vector<16xi32>
            %52 = vector.bitcast %51 : vector<16xi32> to vector<64xi8>
            %53 = func.call @vpdpbusd_512(%42, %35, %52) : (vector<16xi32>, vector<64xi8>, vector<64xi8>) -> vector<16xi32>
            %c4_25 = arith.constant 4 : index
            %54 = arith.addi %37, %c4_25 : index
            %55 = vector.load %alloc[%1, %54] : memref<2x128xi8>, vector<4xi8>
            %56 = vector.bitcast %55 : vector<4xi8> to vector<1xi32>
            %57 = vector.broadcast %56 : vector<1xi32> to vector<16xi32>
            %58 = vector.bitcast %57 : vector<16xi32> to vector<64xi8>
            %59 = func.call @vpdpbusd_512(%47, %35, %58) : (vector<16xi32>, vector<64xi8>, vector<64xi8>) -> vector<16xi32>
            scf.yield %53, %59 : vector<16xi32>, vector<16xi32>
          }
          %c2_17 = arith.constant 2 : index
          %15 = arith.muli %arg4, %c2_17 : index
          %16 = arith.addi %15, %arg6 : index
          %c0_18 = arith.constant 0 : index
          %17 = vector.load %arg2[%16, %c0_18] : memref<2x16xf16>, vector<16xf16>
          %18 = arith.extf %17 : vector<16xf16> to vector<16xf32>
          %19 = memref.load %alloc_0[%0, %arg6] : memref<2x2xf32>
          %20 = vector.broadcast %19 : f32 to vector<16xf32>
          %21 = arith.sitofp %14#0 : vector<16xi32> to vector<16xf32>
          %22 = arith.mulf %21, %20 : vector<16xf32>
          %23 = vector.fma %22, %18, %arg7 : vector<16xf32>
          %24 = memref.load %alloc_0[%1, %arg6] : memref<2x2xf32>
          %25 = vector.broadcast %24 : f32 to vector<16xf32>
          %26 = arith.sitofp %14#1 : vector<16xi32> to vector<16xf32>
          %27 = arith.mulf %26, %25 : vector<16xf32>
          %28 = vector.fma %27, %18, %arg8 : vector<16xf32>
          scf.yield %23, %28 : vector<16xf32>, vector<16xf32>
        }
        %c16 = arith.constant 16 : index
        %3 = arith.muli %arg4, %c16 : index
        vector.store %2#0, %arg3[%0, %3] : memref<2x16xf32>, vector<16xf32>
        vector.store %2#1, %arg3[%1, %3] : memref<2x16xf32>, vector<16xf32>
      }
    }
    return
  }
}
