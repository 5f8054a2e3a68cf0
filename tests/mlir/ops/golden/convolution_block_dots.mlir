module {
  func.func @f(%arg0: memref<1x2xi32>, %arg1: memref<2x16xi32>, %arg2: memref<1x16xf32>) {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant dense<0.000000e+00> : vector<16xf32>
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %c1 = arith.constant 1 : index
    %0 = scf.for %arg3 = %c0 to %c2 step %c1 iter_args(%arg4 = %cst_0) -> (vector<16xf32>) {
      %c0_3 = arith.constant 0 : index
      %1 = memref.load %arg0[%c0_3, %arg3] : memref<1x2xi32>
      %2 = vector.broadcast %1 : i32 to vector<16xi32>
      %c0_4 = arith.constant 0 : index
      %3 = vector.load %arg1[%arg3, %c0_4] : memref<2x16xi32>, vector<16xi32>
      %4 = vector.bitcast %2 : vector<16xi32> to vector<32xbf16>
      %5 = vector.bitcast %3 : vector<16xi32> to vector<32xbf16>
      %6 = x86.avx512.dot %arg4, %4, %5 : vector<32xbf16> -> vector<16xf32>
      scf.yield %6 : vector<16xf32>
    }
    %c0_1 = arith.constant 0 : index
    %c0_2 = arith.constant 0 : index
    vector.store %0, %arg2[%c0_1, %c0_2] : memref<1x16xf32>, vector<16xf32>
    return
  }
}
