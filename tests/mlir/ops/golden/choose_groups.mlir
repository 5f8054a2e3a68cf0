#map = affine_map<()[s0] -> (s0 * 32)>
#map1 = affine_map<()[s0] -> (s0 * 1920)>
module {
  func.func @f(%arg0: memref<128x60xbf16> {tuner.bounds = array<i64: 50, 60>, tuner.of_groups = "rows"}, %arg1: memref<60x40xbf16> {tuner.of_groups = "matrices"}, %arg2: memref<4xi32> {tuner.of_groups = "offsets"}, %arg3: memref<128x40xf32> {tuner.bounds = array<i64: 50, 40>, tuner.of_groups = "results"}) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    %c50 = arith.constant 50 : index
    gpu.launch blocks(%arg4, %arg5, %arg6) in (%arg10 = %c2, %arg11 = %c4, %arg12 = %c1) threads(%arg7, %arg8, %arg9) in (%arg13 = %c1, %arg14 = %c1, %arg15 = %c1) {
      %block_id_y = gpu.block_id y
      %c0_0 = arith.constant 0 : index
      %c32 = arith.constant 32 : index
      %0 = memref.load %arg2[%c0_0] : memref<4xi32>
      %1 = arith.index_cast %0 : i32 to index
      %c0_1 = arith.constant 0 : index
      %c3 = arith.constant 3 : index
      %c1_2 = arith.constant 1 : index
      %2:6 = scf.for %arg16 = %c0_1 to %c3 step %c1_2 iter_args(%arg17 = %c0_0, %arg18 = %1, %arg19 = %c0_0, %arg20 = %c0_0, %arg21 = %c0_0, %arg22 = %c0_0) -> (index, index, index, index, index, index) {
        %c1_5 = arith.constant 1 : index
        %7 = arith.addi %arg16, %c1_5 : index
        %8 = memref.load %arg2[%7] : memref<4xi32>
        %9 = arith.index_cast %8 : i32 to index
        %10 = arith.subi %9, %arg18 : index
        %c31 = arith.constant 31 : index
        %11 = arith.addi %10, %c31 : index
        %12 = arith.divui %11, %c32 : index
        %13 = arith.subi %block_id_y, %arg17 : index
        %14 = arith.cmpi ult, %13, %12 : index
        %15 = arith.select %14, %arg16, %arg19 : index
        %16 = arith.select %14, %13, %arg20 : index
        %17 = arith.select %14, %arg18, %arg21 : index
        %18 = arith.select %14, %10, %arg22 : index
        %19 = arith.addi %arg17, %12 : index
        scf.yield %19, %9, %15, %16, %17, %18 : index, index, index, index, index, index
      }
      %c0_3 = arith.constant 0 : index
      %c60 = arith.constant 60 : index
      %3 = arith.muli %2#4, %c60 : index
      %c40 = arith.constant 40 : index
      %4 = arith.muli %2#4, %c40 : index
      %reinterpret_cast = memref.reinterpret_cast %arg3 to offset: [%4], sizes: [128, 40], strides: [40, 1] : memref<128x40xf32> to memref<128x40xf32, strided<[40, 1], offset: ?>>
      %c2400 = arith.constant 2400 : index
      %5 = arith.muli %2#2, %c2400 : index
      %reinterpret_cast_4 = memref.reinterpret_cast %arg1 to offset: [%5], sizes: [60, 40], strides: [40, 1] : memref<60x40xbf16> to memref<60x40xbf16, strided<[40, 1], offset: ?>>
      %6 = arith.cmpi ne, %2#5, %c0_3 : index
      %alloc = memref.alloc() : memref<4xbf16, #gpu.address_space<workgroup>>
      scf.if %6 {
        %reinterpret_cast_5 = memref.reinterpret_cast %arg0 to offset: [%3], sizes: [7680], strides: [1] : memref<128x60xbf16> to memref<7680xbf16, strided<[1], offset: ?>>
        %7 = affine.apply #map()[%2#3]
        %8 = affine.apply #map1()[%2#3]
        %9 = arith.cmpi slt, %7, %2#5 : index
        scf.if %9 {
          %10 = vector.load %reinterpret_cast_5[%8] : memref<7680xbf16, strided<[1], offset: ?>>, vector<4xbf16>
          vector.store %10, %alloc[%c0] : memref<4xbf16, #gpu.address_space<workgroup>>, vector<4xbf16>
          %11 = vector.load %reinterpret_cast_4[%c0, %c0] : memref<60x40xbf16, strided<[40, 1], offset: ?>>, vector<4xbf16>
          %12 = arith.mulf %10, %11 : vector<4xbf16>
          %13 = arith.extf %12 : vector<4xbf16> to vector<4xf32>
          vector.store %13, %reinterpret_cast[%7, %c0] : memref<128x40xf32, strided<[40, 1], offset: ?>>, vector<4xf32>
        }
      }
      gpu.terminator
    }
    return
  }
}
