module {
  func.func @f(%arg0: memref<64x64xf32, strided<[60, 1]>> {tuner.bounds = array<i64: 50, 58>}, %arg1: memref<64x64xf32>, %arg2: index, %arg3: index) {
    %cst = arith.constant 0.000000e+00 : f32
    %alloc = memref.alloc() : memref<64x64xf32, #gpu.address_space<workgroup>>
    %c58 = arith.constant 58 : index
    %0 = arith.subi %c58, %arg3 : index
    %c4 = arith.constant 4 : index
    %1 = arith.minsi %0, %c4 : index
    %c0 = arith.constant 0 : index
    %2 = arith.maxsi %1, %c0 : index
    %c50 = arith.constant 50 : index
    %3 = arith.cmpi slt, %arg2, %c50 : index
    %c0_0 = arith.constant 0 : index
    %4 = arith.select %3, %2, %c0_0 : index
    %5 = vector.create_mask %4 : vector<4xi1>
    %cst_1 = arith.constant 0.000000e+00 : f32
    %6 = vector.transfer_read %arg0[%arg2, %arg3], %cst_1, %5 {in_bounds = [true]} : memref<64x64xf32, strided<[60, 1]>>, vector<4xf32>
    vector.store %6, %alloc[%arg2, %arg3] : memref<64x64xf32, #gpu.address_space<workgroup>>, vector<4xf32>
    %cst_2 = arith.constant dense<0.000000e+00> : vector<4xf32>
    %c50_3 = arith.constant 50 : index
    %7 = arith.cmpi slt, %arg3, %c50_3 : index
    %c58_4 = arith.constant 58 : index
    %8 = arith.cmpi slt, %arg2, %c58_4 : index
    %9 = arith.andi %7, %8 : i1
    %10 = scf.if %9 -> (vector<1xf32>) {
      %30 = vector.load %arg0[%arg3, %arg2] : memref<64x64xf32, strided<[60, 1]>>, vector<1xf32>
      scf.yield %30 : vector<1xf32>
    } else {
      %cst_11 = arith.constant dense<0.000000e+00> : vector<1xf32>
      scf.yield %cst_11 : vector<1xf32>
    }
    %11 = vector.insert_strided_slice %10, %cst_2 {offsets = [0], strides = [1]} : vector<1xf32> into vector<4xf32>
    %c1 = arith.constant 1 : index
    %12 = arith.addi %arg2, %c1 : index
    %c50_5 = arith.constant 50 : index
    %13 = arith.cmpi slt, %arg3, %c50_5 : index
    %c58_6 = arith.constant 58 : index
    %14 = arith.cmpi slt, %12, %c58_6 : index
    %15 = arith.andi %13, %14 : i1
    %16 = scf.if %15 -> (vector<1xf32>) {
      %30 = vector.load %arg0[%arg3, %12] : memref<64x64xf32, strided<[60, 1]>>, vector<1xf32>
      scf.yield %30 : vector<1xf32>
    } else {
      %cst_11 = arith.constant dense<0.000000e+00> : vector<1xf32>
      scf.yield %cst_11 : vector<1xf32>
    }
    %17 = vector.insert_strided_slice %16, %11 {offsets = [1], strides = [1]} : vector<1xf32> into vector<4xf32>
    %c2 = arith.constant 2 : index
    %18 = arith.addi %arg2, %c2 : index
    %c50_7 = arith.constant 50 : index
    %19 = arith.cmpi slt, %arg3, %c50_7 : index
    %c58_8 = arith.constant 58 : index
    %20 = arith.cmpi slt, %18, %c58_8 : index
    %21 = arith.andi %19, %20 : i1
    %22 = scf.if %21 -> (vector<1xf32>) {
      %30 = vector.load %arg0[%arg3, %18] : memref<64x64xf32, strided<[60, 1]>>, vector<1xf32>
      scf.yield %30 : vector<1xf32>
    } else {
      %cst_11 = arith.constant dense<0.000000e+00> : vector<1xf32>
      scf.yield %cst_11 : vector<1xf32>
    }
    %23 = vector.insert_strided_slice %22, %17 {offsets = [2], strides = [1]} : vector<1xf32> into vector<4xf32>
    %c3 = arith.constant 3 : index
    %24 = arith.addi %arg2, %c3 : index
    %c50_9 = arith.constant 50 : index
    %25 = arith.cmpi slt, %arg3, %c50_9 : index
    %c58_10 = arith.constant 58 : index
    %26 = arith.cmpi slt, %24, %c58_10 : index
    %27 = arith.andi %25, %26 : i1
    %28 = scf.if %27 -> (vector<1xf32>) {
      %30 = vector.load %arg0[%arg3, %24] : memref<64x64xf32, strided<[60, 1]>>, vector<1xf32>
      scf.yield %30 : vector<1xf32>
    } else {
      %cst_11 = arith.constant dense<0.000000e+00> : vector<1xf32>
      scf.yield %cst_11 : vector<1xf32>
    }
    %29 = vector.insert_strided_slice %28, %23 {offsets = [3], strides = [1]} : vector<1xf32> into vector<4xf32>
    vector.store %29, %arg1[%arg3, %arg2] : memref<64x64xf32>, vector<4xf32>
    return
  }
}
