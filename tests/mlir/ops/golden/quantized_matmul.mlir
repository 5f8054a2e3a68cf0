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
          %5 = arith.muli %arg4, %c8 : index
          %c4 = arith.constant 4 : index
          %6 = arith.muli %arg6, %c4 : index
          %7 = arith.addi %5, %6 : index
          %c32 = arith.constant 32 : index
          %8 = arith.muli %arg6, %c32 : index
          %9 = memref.load %alloc_1[%0, %arg6] : memref<2x2xi32>
          %c-8_i32 = arith.constant -8 : i32
          %10 = arith.muli %9, %c-8_i32 : i32
          %11 = vector.broadcast %10 : i32 to vector<16xi32>
          %12 = memref.load %alloc_1[%1, %arg6] : memref<2x2xi32>
          %c-8_i32_14 = arith.constant -8 : i32
          %13 = arith.muli %12, %c-8_i32_14 : i32
          %14 = vector.broadcast %13 : i32 to vector<16xi32>
          %c0_15 = arith.constant 0 : index
          %c4_16 = arith.constant 4 : index
          %c1_17 = arith.constant 1 : index
          %15:2 = scf.for %arg9 = %c0_15 to %c4_16 step %c1_17 iter_args(%arg10 = %11, %arg11 = %14) -> (vector<16xi32>, vector<16xi32>) {
            %30 = arith.addi %7, %arg9 : index
            %c0_22 = arith.constant 0 : index
            %31 = vector.load %arg1[%30, %c0_22] : memref<8x64xi8>, vector<64xi8>
            %32 = vector.bitcast %31 : vector<64xi8> to vector<32xi16>
            %cst_23 = arith.constant dense<4> : vector<32xi16>
            %33 = arith.shrui %32, %cst_23 : vector<32xi16>
            %34 = vector.bitcast %33 : vector<32xi16> to vector<64xi8>
            %cst_24 = arith.constant dense<15> : vector<64xi8>
            %35 = arith.andi %31, %cst_24 : vector<64xi8>
            %cst_25 = arith.constant dense<15> : vector<64xi8>
            %36 = arith.andi %34, %cst_25 : vector<64xi8>
            %c8_26 = arith.constant 8 : index
            %37 = arith.muli %arg9, %c8_26 : index
            %38 = arith.addi %8, %37 : index
            %39 = vector.load %alloc[%0, %38] : memref<2x128xi8>, vector<4xi8>
            %40 = vector.bitcast %39 : vector<4xi8> to vector<1xi32>
            %41 = vector.broadcast %40 : vector<1xi32> to vector<16xi32>
            %42 = vector.bitcast %41 : vector<16xi32> to vector<64xi8>
            %43 = func.call @vpdpbusd_512(%arg10, %35, %42) : (vector<16xi32>, vector<64xi8>, vector<64xi8>) -> vector<16xi32>
            %44 = vector.load %alloc[%1, %38] : memref<2x128xi8>, vector<4xi8>
            %45 = vector.bitcast %44 : vector<4xi8> to vector<1xi32>
            %46 = vector.broadcast %45 : vector<1xi32> to vector<16xi32>
            %47 = vector.bitcast %46 : vector<16xi32> to vector<64xi8>
            %48 = func.call @vpdpbusd_512(%arg11, %35, %47) : (vector<16xi32>, vector<64xi8>, vector<64xi8>) -> vector<16xi32>
            %c4_27 = arith.constant 4 : index
            %49 = arith.addi %38, %c4_27 : index
            %50 = vector.load %alloc[%0, %49] : memref<2x128xi8>, vector<4xi8>
            %51 = vector.bitcast %50 : vector<4xi8> to vector<1xi32>
            %52 = vector.broadcast %51 : vector<1xi32> to vector<16xi32>
            %53 = vector.bitcast %52 : vector<16xi32> to vector<64xi8>
            %54 = func.call @vpdpbusd_512(%43, %36, %53) : (vector<16xi32>, vector<64xi8>, vector<64xi8>) -> vector<16xi32>
            %c4_28 = arith.constant 4 : index
            %55 = arith.addi %38, %c4_28 : index
            %56 = vector.load %alloc[%1, %55] : memref<2x128xi8>, vector<4xi8>
            %57 = vector.bitcast %56 : vector<4xi8> to vector<1xi32>
            %58 = vector.broadcast %57 : vector<1xi32> to vector<16xi32>
            %59 = vector.bitcast %58 : vector<16xi32> to vector<64xi8>
            %60 = func.call @vpdpbusd_512(%48, %36, %59) : (vector<16xi32>, vector<64xi8>, vector<64xi8>) -> vector<16xi32>
            scf.yield %54, %60 : vector<16xi32>, vector<16xi32>
          }
          %c2_18 = arith.constant 2 : index
          %16 = arith.muli %arg4, %c2_18 : index
          %17 = arith.addi %16, %arg6 : index
          %c0_19 = arith.constant 0 : index
          %18 = vector.load %arg2[%17, %c0_19] : memref<2x16xf16>, vector<16xf16>
          %19 = arith.extf %18 : vector<16xf16> to vector<16xf32>
          %c0_20 = arith.constant 0 : index
          %20 = memref.load %alloc_0[%0, %arg6] : memref<2x2xf32>
          %21 = vector.broadcast %20 : f32 to vector<16xf32>
          %22 = arith.sitofp %15#0 : vector<16xi32> to vector<16xf32>
          %23 = arith.mulf %22, %19 : vector<16xf32>
          %24 = vector.fma %23, %21, %arg7 : vector<16xf32>
          %c0_21 = arith.constant 0 : index
          %25 = memref.load %alloc_0[%1, %arg6] : memref<2x2xf32>
          %26 = vector.broadcast %25 : f32 to vector<16xf32>
          %27 = arith.sitofp %15#1 : vector<16xi32> to vector<16xf32>
          %28 = arith.mulf %27, %19 : vector<16xf32>
          %29 = vector.fma %28, %26, %arg8 : vector<16xf32>
          scf.yield %24, %29 : vector<16xf32>, vector<16xf32>
        }
        %c16 = arith.constant 16 : index
        %3 = arith.muli %arg4, %c16 : index
        vector.store %2#0, %arg3[%0, %3] : memref<2x16xf32>, vector<16xf32>
        %c16_13 = arith.constant 16 : index
        %4 = arith.muli %arg4, %c16_13 : index
        vector.store %2#1, %arg3[%1, %4] : memref<2x16xf32>, vector<16xf32>
      }
    }
    return
  }
}
