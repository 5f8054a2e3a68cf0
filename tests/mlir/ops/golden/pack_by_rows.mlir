#map = affine_map<(d0) -> (d0 floordiv 64)>
module {
  func.func private @use(memref<4x32x64xf32>)
  func.func @f(%arg0: memref<8x64xf32>, %arg1: memref<32x200xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %c200 = arith.constant 200 : index
    %cst = arith.constant 0.000000e+00 : f32
    %alloc = memref.alloc() : memref<4x32x64xf32>
    scf.for %arg2 = %c0 to %c32 step %c1 {
      scf.for %arg3 = %c0 to %c200 step %c64 {
        %0 = affine.apply #map(%arg3)
        %subview = memref.subview %alloc[%0, 0, 0] [1, 32, 64] [1, 1, 1] : memref<4x32x64xf32> to memref<32x64xf32, strided<[64, 1], offset: ?>>
        %1 = vector.transfer_read %arg1[%arg2, %arg3], %cst : memref<32x200xf32>, vector<64xf32>
        vector.transfer_write %1, %subview[%arg2, %c0] {in_bounds = [true]} : vector<64xf32>, memref<32x64xf32, strided<[64, 1], offset: ?>>
      }
    }
    call @use(%alloc) : (memref<4x32x64xf32>) -> ()
    return
  }
}
