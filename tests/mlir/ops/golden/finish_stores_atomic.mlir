module {
  func.func @f(%arg0: memref<64x64xf32, strided<[64, 1]>> {tuner.bounds = array<i64: 64, 64>, tuner.zeroed}, %arg1: memref<64xf16>, %arg2: memref<64xf32>, %arg3: index, %arg4: index, %arg5: vector<4xf32>) {
    %0 = vector.extract_strided_slice %arg5 {offsets = [0], sizes = [1], strides = [1]} : vector<4xf32> to vector<1xf32>
    %1 = vector.extract %0[0] : f32 from vector<1xf32>
    %2 = memref.atomic_rmw addf %1, %arg0[%arg3, %arg4] : (f32, memref<64x64xf32, strided<[64, 1]>>) -> f32
    %3 = vector.extract_strided_slice %arg5 {offsets = [1], sizes = [1], strides = [1]} : vector<4xf32> to vector<1xf32>
    %c1 = arith.constant 1 : index
    %4 = arith.addi %arg4, %c1 : index
    %5 = vector.extract %3[0] : f32 from vector<1xf32>
    %6 = memref.atomic_rmw addf %5, %arg0[%arg3, %4] : (f32, memref<64x64xf32, strided<[64, 1]>>) -> f32
    %7 = vector.extract_strided_slice %arg5 {offsets = [2], sizes = [1], strides = [1]} : vector<4xf32> to vector<1xf32>
    %c2 = arith.constant 2 : index
    %8 = arith.addi %arg4, %c2 : index
    %9 = vector.extract %7[0] : f32 from vector<1xf32>
    %10 = memref.atomic_rmw addf %9, %arg0[%arg3, %8] : (f32, memref<64x64xf32, strided<[64, 1]>>) -> f32
    %11 = vector.extract_strided_slice %arg5 {offsets = [3], sizes = [1], strides = [1]} : vector<4xf32> to vector<1xf32>
    %c3 = arith.constant 3 : index
    %12 = arith.addi %arg4, %c3 : index
    %13 = vector.extract %11[0] : f32 from vector<1xf32>
    %14 = memref.atomic_rmw addf %13, %arg0[%arg3, %12] : (f32, memref<64x64xf32, strided<[64, 1]>>) -> f32
    return
  }
}
