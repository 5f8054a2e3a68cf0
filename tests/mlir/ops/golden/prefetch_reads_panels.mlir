module {
  func.func private @use(vector<32xf32>)
  func.func @f(%arg0: memref<5x8xf32>, %arg1: memref<2x8x32xf32> {tuner.packing = 32 : i64, tuner.weight}) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    %c8 = arith.constant 8 : index
    %cst = arith.constant 0.000000e+00 : f32
    scf.for %arg2 = %c0 to %c2 step %c1 {
      scf.for %arg3 = %c0 to %c4 step %c2 {
        scf.for %arg4 = %c0 to %c8 step %c1 {
          %0 = arith.divui %arg3, %c2 : index
          %c8_0 = arith.constant 8 : index
          %1 = arith.muli %0, %c8_0 : index
          %2 = arith.addi %1, %arg4 : index
          %c699051 = arith.constant 699051 : index
          %3 = arith.muli %2, %c699051 : index
          %c65536 = arith.constant 65536 : index
          %4 = arith.divui %3, %c65536 : index
          %c1_1 = arith.constant 1 : index
          %5 = arith.addi %arg2, %c1_1 : index
          %c0_2 = arith.constant 0 : index
          memref.prefetch %arg1[%5, %c0_2, %4], read, locality<3>, data : memref<2x8x32xf32>
          %6 = vector.transfer_read %arg1[%arg2, %arg4, %c0], %cst {in_bounds = [true]} : memref<2x8x32xf32>, vector<32xf32>
          func.call @use(%6) : (vector<32xf32>) -> ()
        } {k}
      } {ir}
      scf.for %arg3 = %c0 to %c8 step %c1 {
        %c2_0 = arith.constant 2 : index
        %c8_1 = arith.constant 8 : index
        %0 = arith.muli %c2_0, %c8_1 : index
        %1 = arith.addi %0, %arg3 : index
        %c699051 = arith.constant 699051 : index
        %2 = arith.muli %1, %c699051 : index
        %c65536 = arith.constant 65536 : index
        %3 = arith.divui %2, %c65536 : index
        %c1_2 = arith.constant 1 : index
        %4 = arith.addi %arg2, %c1_2 : index
        %c0_3 = arith.constant 0 : index
        memref.prefetch %arg1[%4, %c0_3, %3], read, locality<3>, data : memref<2x8x32xf32>
        %5 = vector.transfer_read %arg1[%arg2, %arg3, %c0], %cst {in_bounds = [true]} : memref<2x8x32xf32>, vector<32xf32>
        func.call @use(%5) : (vector<32xf32>) -> ()
      } {k}
    } {jc}
    return
  }
}
