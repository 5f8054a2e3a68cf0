module {
  func.func @f(%arg0: memref<64x64xf32, strided<[62, 1]>> {tuner.bounds = array<i64: 50, 62>}, %arg1: memref<64xf16>, %arg2: memref<64xf32>, %arg3: index, %arg4: index, %arg5: vector<4xf32>) {
    %0 = vector.extract_strided_slice %arg5 {offsets = [0], sizes = [1], strides = [1]} : vector<4xf32> to vector<1xf32>
    vector.store %0, %arg2[%arg3] : memref<64xf32>, vector<1xf32>
    %1 = vector.extract_strided_slice %arg5 {offsets = [1], sizes = [1], strides = [1]} : vector<4xf32> to vector<1xf32>
    %c1 = arith.constant 1 : index
    %2 = arith.addi %arg3, %c1 : index
    vector.store %1, %arg2[%2] : memref<64xf32>, vector<1xf32>
    %3 = vector.extract_strided_slice %arg5 {offsets = [2], sizes = [1], strides = [1]} : vector<4xf32> to vector<1xf32>
    %c2 = arith.constant 2 : index
    %4 = arith.addi %arg3, %c2 : index
    vector.store %3, %arg2[%4] : memref<64xf32>, vector<1xf32>
    %5 = vector.extract_strided_slice %arg5 {offsets = [3], sizes = [1], strides = [1]} : vector<4xf32> to vector<1xf32>
    %c3 = arith.constant 3 : index
    %6 = arith.addi %arg3, %c3 : index
    vector.store %5, %arg2[%6] : memref<64xf32>, vector<1xf32>
    %7 = vector.extract_strided_slice %arg5 {offsets = [0], sizes = [2], strides = [1]} : vector<4xf32> to vector<2xf32>
    %c50 = arith.constant 50 : index
    %8 = arith.cmpi slt, %arg3, %c50 : index
    %c62 = arith.constant 62 : index
    %9 = arith.cmpi slt, %arg4, %c62 : index
    %10 = arith.andi %8, %9 : i1
    scf.if %10 {
      vector.store %7, %arg0[%arg3, %arg4] : memref<64x64xf32, strided<[62, 1]>>, vector<2xf32>
    }
    %11 = vector.extract_strided_slice %arg5 {offsets = [2], sizes = [2], strides = [1]} : vector<4xf32> to vector<2xf32>
    %c2_0 = arith.constant 2 : index
    %12 = arith.addi %arg4, %c2_0 : index
    %c50_1 = arith.constant 50 : index
    %13 = arith.cmpi slt, %arg3, %c50_1 : index
    %c62_2 = arith.constant 62 : index
    %14 = arith.cmpi slt, %12, %c62_2 : index
    %15 = arith.andi %13, %14 : i1
    scf.if %15 {
      vector.store %11, %arg0[%arg3, %12] : memref<64x64xf32, strided<[62, 1]>>, vector<2xf32>
    }
    return
  }
}
