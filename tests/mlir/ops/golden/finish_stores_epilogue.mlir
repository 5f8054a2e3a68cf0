module {
  func.func @f(%arg0: memref<64x64xf16, strided<[64, 1]>> {tuner.bounds = array<i64: 50, 64>}, %arg1: memref<64xf16>, %arg2: memref<64xf32>, %arg3: index, %arg4: index, %arg5: vector<4xf32>) {
    %c50 = arith.constant 50 : index
    %0 = arith.cmpi slt, %arg3, %c50 : index
    scf.if %0 {
      %1 = vector.load %arg1[%arg4] : memref<64xf16>, vector<4xf16>
      %2 = memref.load %arg2[%arg3] : memref<64xf32>
      %3 = vector.broadcast %2 : f32 to vector<4xf32>
      %cst = arith.constant dense<0.000000e+00> : vector<4xf32>
      %4 = arith.extf %1 : vector<4xf16> to vector<4xf32>
      %5 = arith.addf %arg5, %4 : vector<4xf32>
      %6 = arith.mulf %5, %3 : vector<4xf32>
      %7 = arith.maximumf %6, %cst : vector<4xf32>
      %8 = arith.truncf %7 : vector<4xf32> to vector<4xf16>
      vector.store %8, %arg0[%arg3, %arg4] : memref<64x64xf16, strided<[64, 1]>>, vector<4xf16>
    }
    return
  }
}
