module {
  func.func @f(%arg0: memref<64x64xf32, strided<[60, 1]>> {tuner.bounds = array<i64: 64, 59>}, %arg1: memref<64x64xf32>, %arg2: index, %arg3: index) {
    %cst = arith.constant 0.000000e+00 : f32
    %alloc = memref.alloc() : memref<64x64xf32, #gpu.address_space<workgroup>>
    %cst_0 = arith.constant dense<0.000000e+00> : vector<4xf32>
    %c59 = arith.constant 59 : index
    %0 = arith.cmpi slt, %arg3, %c59 : index
    %1 = scf.if %0 -> (vector<1xf32>) {
      %30 = vector.load %arg0[%arg2, %arg3] : memref<64x64xf32, strided<[60, 1]>>, vector<1xf32>
      scf.yield %30 : vector<1xf32>
    } else {
      %cst_12 = arith.constant dense<0.000000e+00> : vector<1xf32>
      scf.yield %cst_12 : vector<1xf32>
    }
    %2 = vector.insert_strided_slice %1, %cst_0 {offsets = [0], strides = [1]} : vector<1xf32> into vector<4xf32>
    %c1 = arith.constant 1 : index
    %3 = arith.addi %arg3, %c1 : index
    %c59_1 = arith.constant 59 : index
    %4 = arith.cmpi slt, %3, %c59_1 : index
    %5 = scf.if %4 -> (vector<1xf32>) {
      %30 = vector.load %arg0[%arg2, %3] : memref<64x64xf32, strided<[60, 1]>>, vector<1xf32>
      scf.yield %30 : vector<1xf32>
    } else {
      %cst_12 = arith.constant dense<0.000000e+00> : vector<1xf32>
      scf.yield %cst_12 : vector<1xf32>
    }
    %6 = vector.insert_strided_slice %5, %2 {offsets = [1], strides = [1]} : vector<1xf32> into vector<4xf32>
    %c2 = arith.constant 2 : index
    %7 = arith.addi %arg3, %c2 : index
    %c59_2 = arith.constant 59 : index
    %8 = arith.cmpi slt, %7, %c59_2 : index
    %9 = scf.if %8 -> (vector<1xf32>) {
      %30 = vector.load %arg0[%arg2, %7] : memref<64x64xf32, strided<[60, 1]>>, vector<1xf32>
      scf.yield %30 : vector<1xf32>
    } else {
      %cst_12 = arith.constant dense<0.000000e+00> : vector<1xf32>
      scf.yield %cst_12 : vector<1xf32>
    }
    %10 = vector.insert_strided_slice %9, %6 {offsets = [2], strides = [1]} : vector<1xf32> into vector<4xf32>
    %c3 = arith.constant 3 : index
    %11 = arith.addi %arg3, %c3 : index
    %c59_3 = arith.constant 59 : index
    %12 = arith.cmpi slt, %11, %c59_3 : index
    %13 = scf.if %12 -> (vector<1xf32>) {
      %30 = vector.load %arg0[%arg2, %11] : memref<64x64xf32, strided<[60, 1]>>, vector<1xf32>
      scf.yield %30 : vector<1xf32>
    } else {
      %cst_12 = arith.constant dense<0.000000e+00> : vector<1xf32>
      scf.yield %cst_12 : vector<1xf32>
    }
    %14 = vector.insert_strided_slice %13, %10 {offsets = [3], strides = [1]} : vector<1xf32> into vector<4xf32>
    vector.store %14, %alloc[%arg2, %arg3] : memref<64x64xf32, #gpu.address_space<workgroup>>, vector<4xf32>
    %cst_4 = arith.constant dense<0.000000e+00> : vector<4xf32>
    %c59_5 = arith.constant 59 : index
    %15 = arith.cmpi slt, %arg2, %c59_5 : index
    %16 = scf.if %15 -> (vector<1xf32>) {
      %30 = vector.load %arg0[%arg3, %arg2] : memref<64x64xf32, strided<[60, 1]>>, vector<1xf32>
      scf.yield %30 : vector<1xf32>
    } else {
      %cst_12 = arith.constant dense<0.000000e+00> : vector<1xf32>
      scf.yield %cst_12 : vector<1xf32>
    }
    %17 = vector.insert_strided_slice %16, %cst_4 {offsets = [0], strides = [1]} : vector<1xf32> into vector<4xf32>
    %c1_6 = arith.constant 1 : index
    %18 = arith.addi %arg2, %c1_6 : index
    %c59_7 = arith.constant 59 : index
    %19 = arith.cmpi slt, %18, %c59_7 : index
    %20 = scf.if %19 -> (vector<1xf32>) {
      %30 = vector.load %arg0[%arg3, %18] : memref<64x64xf32, strided<[60, 1]>>, vector<1xf32>
      scf.yield %30 : vector<1xf32>
    } else {
      %cst_12 = arith.constant dense<0.000000e+00> : vector<1xf32>
      scf.yield %cst_12 : vector<1xf32>
    }
    %21 = vector.insert_strided_slice %20, %17 {offsets = [1], strides = [1]} : vector<1xf32> into vector<4xf32>
    %c2_8 = arith.constant 2 : index
    %22 = arith.addi %arg2, %c2_8 : index
    %c59_9 = arith.constant 59 : index
    %23 = arith.cmpi slt, %22, %c59_9 : index
    %24 = scf.if %23 -> (vector<1xf32>) {
      %30 = vector.load %arg0[%arg3, %22] : memref<64x64xf32, strided<[60, 1]>>, vector<1xf32>
      scf.yield %30 : vector<1xf32>
    } else {
      %cst_12 = arith.constant dense<0.000000e+00> : vector<1xf32>
      scf.yield %cst_12 : vector<1xf32>
    }
    %25 = vector.insert_strided_slice %24, %21 {offsets = [2], strides = [1]} : vector<1xf32> into vector<4xf32>
    %c3_10 = arith.constant 3 : index
    %26 = arith.addi %arg2, %c3_10 : index
    %c59_11 = arith.constant 59 : index
    %27 = arith.cmpi slt, %26, %c59_11 : index
    %28 = scf.if %27 -> (vector<1xf32>) {
      %30 = vector.load %arg0[%arg3, %26] : memref<64x64xf32, strided<[60, 1]>>, vector<1xf32>
      scf.yield %30 : vector<1xf32>
    } else {
      %cst_12 = arith.constant dense<0.000000e+00> : vector<1xf32>
      scf.yield %cst_12 : vector<1xf32>
    }
    %29 = vector.insert_strided_slice %28, %25 {offsets = [3], strides = [1]} : vector<1xf32> into vector<4xf32>
    vector.store %29, %arg1[%arg3, %arg2] : memref<64x64xf32>, vector<4xf32>
    return
  }
}
