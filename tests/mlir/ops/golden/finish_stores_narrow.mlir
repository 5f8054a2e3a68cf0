module {
  func.func @f(%arg0: memref<64x64xf32, strided<[61, 1]>> {tuner.bounds = array<i64: 64, 61>}, %arg1: memref<64xf16>, %arg2: memref<64xf32>, %arg3: index, %arg4: index, %arg5: vector<4xf32>) {
    %0 = vector.extract_strided_slice %arg5 {offsets = [0], sizes = [1], strides = [1]} : vector<4xf32> to vector<1xf32>
    %c61 = arith.constant 61 : index
    %1 = arith.cmpi slt, %arg4, %c61 : index
    scf.if %1 {
      vector.store %0, %arg0[%arg3, %arg4] : memref<64x64xf32, strided<[61, 1]>>, vector<1xf32>
    }
    %2 = vector.extract_strided_slice %arg5 {offsets = [1], sizes = [1], strides = [1]} : vector<4xf32> to vector<1xf32>
    %c1 = arith.constant 1 : index
    %3 = arith.addi %arg4, %c1 : index
    %c61_0 = arith.constant 61 : index
    %4 = arith.cmpi slt, %3, %c61_0 : index
    scf.if %4 {
      vector.store %2, %arg0[%arg3, %3] : memref<64x64xf32, strided<[61, 1]>>, vector<1xf32>
    }
    %5 = vector.extract_strided_slice %arg5 {offsets = [2], sizes = [1], strides = [1]} : vector<4xf32> to vector<1xf32>
    %c2 = arith.constant 2 : index
    %6 = arith.addi %arg4, %c2 : index
    %c61_1 = arith.constant 61 : index
    %7 = arith.cmpi slt, %6, %c61_1 : index
    scf.if %7 {
      vector.store %5, %arg0[%arg3, %6] : memref<64x64xf32, strided<[61, 1]>>, vector<1xf32>
    }
    %8 = vector.extract_strided_slice %arg5 {offsets = [3], sizes = [1], strides = [1]} : vector<4xf32> to vector<1xf32>
    %c3 = arith.constant 3 : index
    %9 = arith.addi %arg4, %c3 : index
    %c61_2 = arith.constant 61 : index
    %10 = arith.cmpi slt, %9, %c61_2 : index
    scf.if %10 {
      vector.store %8, %arg0[%arg3, %9] : memref<64x64xf32, strided<[61, 1]>>, vector<1xf32>
    }
    return
  }
}
