module {
  func.func @f(%arg0: memref<3x19xbf16>, %arg1: memref<19x5xbf16>, %arg2: memref<3x5xf32>) {
    %0 = bufferization.to_tensor %arg0 restrict : memref<3x19xbf16> to tensor<3x19xbf16>
    %1 = bufferization.to_tensor %arg1 restrict : memref<19x5xbf16> to tensor<19x5xbf16>
    %2 = bufferization.to_tensor %arg2 restrict writable : memref<3x5xf32> to tensor<3x5xf32>
    %alloc = memref.alloc() {alignment = 64 : i64} : memref<3x19xf32>
    %c0 = arith.constant 0 : index
    %c3 = arith.constant 3 : index
    %c1 = arith.constant 1 : index
    scf.for %arg3 = %c0 to %c3 step %c1 {
      %c0_3 = arith.constant 0 : index
      %c1_4 = arith.constant 1 : index
      %c1_5 = arith.constant 1 : index
      scf.for %arg4 = %c0_3 to %c1_4 step %c1_5 {
        %c16 = arith.constant 16 : index
        %6 = arith.muli %arg4, %c16 : index
        %7 = vector.load %arg0[%arg3, %6] : memref<3x19xbf16>, vector<16xbf16>
        %8 = arith.extf %7 : vector<16xbf16> to vector<16xf32>
        vector.store %8, %alloc[%arg3, %6] : memref<3x19xf32>, vector<16xf32>
      }
      %c0_6 = arith.constant 0 : index
      %c3_7 = arith.constant 3 : index
      %c1_8 = arith.constant 1 : index
      scf.for %arg4 = %c0_6 to %c3_7 step %c1_8 {
        %c16 = arith.constant 16 : index
        %6 = arith.addi %arg4, %c16 : index
        %7 = memref.load %arg0[%arg3, %6] : memref<3x19xbf16>
        %8 = arith.extf %7 : bf16 to f32
        memref.store %8, %alloc[%arg3, %6] : memref<3x19xf32>
      }
    }
    %3 = bufferization.to_tensor %alloc restrict : memref<3x19xf32> to tensor<3x19xf32>
    %alloc_0 = memref.alloc() {alignment = 64 : i64} : memref<19x5xf32>
    %c0_1 = arith.constant 0 : index
    %c19 = arith.constant 19 : index
    %c1_2 = arith.constant 1 : index
    scf.for %arg3 = %c0_1 to %c19 step %c1_2 {
      %c0_3 = arith.constant 0 : index
      %c5 = arith.constant 5 : index
      %c1_4 = arith.constant 1 : index
      scf.for %arg4 = %c0_3 to %c5 step %c1_4 {
        %6 = memref.load %arg1[%arg3, %arg4] : memref<19x5xbf16>
        %7 = arith.extf %6 : bf16 to f32
        memref.store %7, %alloc_0[%arg3, %arg4] : memref<19x5xf32>
      }
    }
    %4 = bufferization.to_tensor %alloc_0 restrict : memref<19x5xf32> to tensor<19x5xf32>
    %5 = linalg.matmul ins(%3, %4 : tensor<3x19xf32>, tensor<19x5xf32>) outs(%2 : tensor<3x5xf32>) -> tensor<3x5xf32>
    bufferization.materialize_in_destination %5 in restrict writable %arg2 : (tensor<3x5xf32>, memref<3x5xf32>) -> ()
    return
  }
}
