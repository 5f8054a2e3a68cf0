#map = affine_map<(d0, d1) -> (d0 + d1)>
module {
  func.func @f(%arg0: memref<8x4xf32>) -> (f32, f32) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    %c8 = arith.constant 8 : index
    %cst = arith.constant 0.000000e+00 : f32
    %0:2 = scf.for %arg1 = %c0 to %c8 step %c4 iter_args(%arg2 = %cst, %arg3 = %cst) -> (f32, f32) {
      %alloc = memref.alloc() : memref<4xf32, #gpu.address_space<workgroup>>
      %c0_0 = arith.constant 0 : index
      %c0_1 = arith.constant 0 : index
      %1 = affine.apply #map(%arg1, %c0_0)
      %2 = memref.load %arg0[%1, %c0_1] : memref<8x4xf32>
      memref.store %2, %alloc[%c0_0] : memref<4xf32, #gpu.address_space<workgroup>>
      %c2_2 = arith.constant 2 : index
      %c0_3 = arith.constant 0 : index
      %3 = affine.apply #map(%arg1, %c2_2)
      %4 = memref.load %arg0[%3, %c0_3] : memref<8x4xf32>
      memref.store %4, %alloc[%c2_2] : memref<4xf32, #gpu.address_space<workgroup>>
      %c0_4 = arith.constant 0 : index
      %5 = memref.load %alloc[%c0_4] : memref<4xf32, #gpu.address_space<workgroup>>
      %6 = arith.addf %arg2, %5 : f32
      %c2_5 = arith.constant 2 : index
      %7 = memref.load %alloc[%c2_5] : memref<4xf32, #gpu.address_space<workgroup>>
      %8 = arith.addf %6, %7 : f32
      scf.yield %8, %6 : f32, f32
    }
    return %0#0, %0#1 : f32, f32
  }
}
