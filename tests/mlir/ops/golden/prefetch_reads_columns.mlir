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
      %c64 = arith.constant 64 : index
      %1 = arith.addi %c4, %c64 : index
      memref.prefetch %arg1[%arg2, %1], read, locality<3>, data : memref<32x64xf32>
      %c96 = arith.constant 96 : index
      %2 = arith.addi %c4, %c96 : index
      memref.prefetch %arg1[%arg2, %2], read, locality<3>, data : memref<32x64xf32>
      %c103 = arith.constant 103 : index
      %3 = arith.addi %c4, %c103 : index
      memref.prefetch %arg1[%arg2, %3], read, locality<3>, data : memref<32x64xf32>
      %4 = vector.transfer_read %arg1[%arg2, %c4], %cst {in_bounds = [true]} : memref<32x64xf32>, vector<40xf32>
      %c64_0 = arith.constant 64 : index
      %5 = arith.addi %c0, %c64_0 : index
      memref.prefetch %subview[%arg2, %5], read, locality<3>, data : memref<32x40xf32, strided<[64, 1], offset: 16>>
      %c79 = arith.constant 79 : index
      %6 = arith.addi %c0, %c79 : index
      memref.prefetch %subview[%arg2, %6], read, locality<3>, data : memref<32x40xf32, strided<[64, 1], offset: 16>>
      %7 = vector.transfer_read %subview[%arg2, %c0], %cst {in_bounds = [true]} : memref<32x40xf32, strided<[64, 1], offset: 16>>, vector<16xf32>
      %8 = vector.transfer_read %alloc[%arg2, %c0], %cst {in_bounds = [true]} : memref<32x64xf32>, vector<16xf32>
      func.call @use(%4, %7, %8, %0) : (vector<40xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) -> ()
    }
    return
  }
}
