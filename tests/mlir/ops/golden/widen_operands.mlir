module {
  func.func @f(%arg0: memref<8x32xf16>, %arg1: memref<32x16xf16>, %arg2: memref<8x16xf32>) {
    %0 = bufferization.to_tensor %arg0 restrict : memref<8x32xf16> to tensor<8x32xf16>
    %1 = bufferization.to_tensor %arg1 restrict : memref<32x16xf16> to tensor<32x16xf16>
    %2 = bufferization.to_tensor %arg2 restrict writable : memref<8x16xf32> to tensor<8x16xf32>
    %alloc = memref.alloc() {alignment = 64 : i64} : memref<8x32xf32>
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %c1 = arith.constant 1 : index
    scf.for %arg3 = %c0 to %c8 step %c1 {
      %c0_0 = arith.constant 0 : index
      %c2 = arith.constant 2 : index
      %c1_1 = arith.constant 1 : index
      scf.for %arg4 = %c0_0 to %c2 step %c1_1 {
        %c16 = arith.constant 16 : index
        %5 = arith.muli %arg4, %c16 : index
        %6 = vector.load %arg0[%arg3, %5] : memref<8x32xf16>, vector<16xf16>
        %7 = arith.extf %6 : vector<16xf16> to vector<16xf32>
        vector.store %7, %alloc[%arg3, %5] : memref<8x32xf32>, vector<16xf32>
      }
    }
    %3 = bufferization.to_tensor %alloc restrict : memref<8x32xf32> to tensor<8x32xf32>
    %4 = linalg.matmul ins(%3, %1 : tensor<8x32xf32>, tensor<32x16xf16>) outs(%2 : tensor<8x16xf32>) -> tensor<8x16xf32>
    bufferization.materialize_in_destination %4 in restrict writable %arg2 : (tensor<8x16xf32>, memref<8x16xf32>) -> ()
    return
  }
}
