module {
  func.func @f(%arg0: memref<64x64xf32, strided<[62, 1]>> {tuner.bounds = array<i64: 50, 62>}, %arg1: memref<64xf16>, %arg2: memref<64xf32>, %arg3: index, %arg4: index, %arg5: vector<4xf32>) {
    %0 = vector.extract_strided_slice %arg5 {offsets = [0], sizes = [2], strides = [1]} : vector<4xf32> to vector<2xf32>
    %c50 = arith.constant 50 : index
    %1 = arith.cmpi slt, %arg3, %c50 : index
    %c62 = arith.constant 62 : index
    %2 = arith.cmpi slt, %arg4, %c62 : index
    %3 = arith.andi %1, %2 : i1
    scf.if %3 {
      vector.store %0, %arg0[%arg3, %arg4] : memref<64x64xf32, strided<[62, 1]>>, vector<2xf32>
    }
    %4 = vector.extract_strided_slice %arg5 {offsets = [2], sizes = [2], strides = [1]} : vector<4xf32> to vector<2xf32>
    %c2 = arith.constant 2 : index
    %5 = arith.addi %arg4, %c2 : index
    %c50_0 = arith.constant 50 : index
    %6 = arith.cmpi slt, %arg3, %c50_0 : index
    %c62_1 = arith.constant 62 : index
    %7 = arith.cmpi slt, %5, %c62_1 : index
    %8 = arith.andi %6, %7 : i1
    scf.if %8 {
      vector.store %4, %arg0[%arg3, %5] : memref<64x64xf32, strided<[62, 1]>>, vector<2xf32>
    }
    return
  }
}
