module {
  func.func @f(%arg0: memref<64x64xf32, strided<[62, 1]>> {tuner.bounds = array<i64: 50, 62>, tuner.zeroed}, %arg1: memref<64xf16>, %arg2: memref<64xf32>, %arg3: index, %arg4: index, %arg5: vector<4xf32>) {
    %0 = vector.extract_strided_slice %arg5 {offsets = [0], sizes = [1], strides = [1]} : vector<4xf32> to vector<1xf32>
    %c50 = arith.constant 50 : index
    %1 = arith.cmpi slt, %arg3, %c50 : index
    %c62 = arith.constant 62 : index
    %2 = arith.cmpi slt, %arg4, %c62 : index
    %3 = arith.andi %1, %2 : i1
    scf.if %3 {
      %19 = vector.extract %0[0] : f32 from vector<1xf32>
      %20 = memref.atomic_rmw addf %19, %arg0[%arg3, %arg4] : (f32, memref<64x64xf32, strided<[62, 1]>>) -> f32
    }
    %4 = vector.extract_strided_slice %arg5 {offsets = [1], sizes = [1], strides = [1]} : vector<4xf32> to vector<1xf32>
    %c1 = arith.constant 1 : index
    %5 = arith.addi %arg4, %c1 : index
    %c50_0 = arith.constant 50 : index
    %6 = arith.cmpi slt, %arg3, %c50_0 : index
    %c62_1 = arith.constant 62 : index
    %7 = arith.cmpi slt, %5, %c62_1 : index
    %8 = arith.andi %6, %7 : i1
    scf.if %8 {
      %19 = vector.extract %4[0] : f32 from vector<1xf32>
      %20 = memref.atomic_rmw addf %19, %arg0[%arg3, %5] : (f32, memref<64x64xf32, strided<[62, 1]>>) -> f32
    }
    %9 = vector.extract_strided_slice %arg5 {offsets = [2], sizes = [1], strides = [1]} : vector<4xf32> to vector<1xf32>
    %c2 = arith.constant 2 : index
    %10 = arith.addi %arg4, %c2 : index
    %c50_2 = arith.constant 50 : index
    %11 = arith.cmpi slt, %arg3, %c50_2 : index
    %c62_3 = arith.constant 62 : index
    %12 = arith.cmpi slt, %10, %c62_3 : index
    %13 = arith.andi %11, %12 : i1
    scf.if %13 {
      %19 = vector.extract %9[0] : f32 from vector<1xf32>
      %20 = memref.atomic_rmw addf %19, %arg0[%arg3, %10] : (f32, memref<64x64xf32, strided<[62, 1]>>) -> f32
    }
    %14 = vector.extract_strided_slice %arg5 {offsets = [3], sizes = [1], strides = [1]} : vector<4xf32> to vector<1xf32>
    %c3 = arith.constant 3 : index
    %15 = arith.addi %arg4, %c3 : index
    %c50_4 = arith.constant 50 : index
    %16 = arith.cmpi slt, %arg3, %c50_4 : index
    %c62_5 = arith.constant 62 : index
    %17 = arith.cmpi slt, %15, %c62_5 : index
    %18 = arith.andi %16, %17 : i1
    scf.if %18 {
      %19 = vector.extract %14[0] : f32 from vector<1xf32>
      %20 = memref.atomic_rmw addf %19, %arg0[%arg3, %15] : (f32, memref<64x64xf32, strided<[62, 1]>>) -> f32
    }
    return
  }
}
