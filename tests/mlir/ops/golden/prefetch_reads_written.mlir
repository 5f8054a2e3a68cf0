module {
  func.func @f(%arg0: vector<16xf32>, %arg1: memref<32x64xf32>) {
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %c32 = arith.constant 32 : index
    scf.for %arg2 = %c0 to %c32 step %c8 {
      %c8_0 = arith.constant 8 : index
      %0 = arith.addi %arg2, %c8_0 : index
      memref.prefetch %arg1[%0, %c8], read, locality<3>, data : memref<32x64xf32>
      %c15 = arith.constant 15 : index
      %1 = arith.addi %c8, %c15 : index
      memref.prefetch %arg1[%0, %1], read, locality<3>, data : memref<32x64xf32>
      vector.transfer_write %arg0, %arg1[%arg2, %c8] {in_bounds = [true]} : vector<16xf32>, memref<32x64xf32>
    }
    return
  }
}
