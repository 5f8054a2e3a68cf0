module {
  func.func private @use(vector<40xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>)
  func.func @f(%arg0: memref<8x64xf32>, %arg1: memref<32x64xf32>) {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c32 = arith.constant 32 : index
    %cst = arith.constant 0.000000e+00 : f32
    %alloc = memref.alloc() : memref<32x64xf32>
    %0 = vector.transfer_read %arg1[%c0, %c0], %cst {in_bounds = [true]} : memref<32x64xf32>, vector<16xf32>
    %subview = memref.subview %arg1[0, 16] [32, 40] [1, 1] : memref<32x64xf32> to memref<32x40xf32, strided<[64, 1], offset: 16>>
    scf.for %arg2 = %c0 to %c32 step %c4 {
      %c4_0 = arith.constant 4 : index
      %1 = arith.addi %arg2, %c4_0 : index
      memref.prefetch %arg1[%1, %c4], read, locality<3>, data : memref<32x64xf32>
      %c16 = arith.constant 16 : index
      %2 = arith.addi %c4, %c16 : index
      memref.prefetch %arg1[%1, %2], read, locality<3>, data : memref<32x64xf32>
      %c32_1 = arith.constant 32 : index
      %3 = arith.addi %c4, %c32_1 : index
      memref.prefetch %arg1[%1, %3], read, locality<3>, data : memref<32x64xf32>
      %c39 = arith.constant 39 : index
      %4 = arith.addi %c4, %c39 : index
      memref.prefetch %arg1[%1, %4], read, locality<3>, data : memref<32x64xf32>
      %5 = vector.transfer_read %arg1[%arg2, %c4], %cst {in_bounds = [true]} : memref<32x64xf32>, vector<40xf32>
      %c4_2 = arith.constant 4 : index
      %6 = arith.addi %arg2, %c4_2 : index
      memref.prefetch %subview[%6, %c0], read, locality<3>, data : memref<32x40xf32, strided<[64, 1], offset: 16>>
      %c15 = arith.constant 15 : index
      %7 = arith.addi %c0, %c15 : index
      memref.prefetch %subview[%6, %7], read, locality<3>, data : memref<32x40xf32, strided<[64, 1], offset: 16>>
      %8 = vector.transfer_read %subview[%arg2, %c0], %cst {in_bounds = [true]} : memref<32x40xf32, strided<[64, 1], offset: 16>>, vector<16xf32>
      %9 = vector.transfer_read %alloc[%arg2, %c0], %cst {in_bounds = [true]} : memref<32x64xf32>, vector<16xf32>
      func.call @use(%5, %8, %9, %0) : (vector<40xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) -> ()
    }
    return
  }
}
