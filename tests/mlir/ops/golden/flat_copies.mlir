#map = affine_map<()[s0] -> (s0 + 8)>
#map1 = affine_map<()[s0] -> (s0 * 32)>
#map2 = affine_map<()[s0, s1] -> (s0 * 60 + s1)>
#map3 = affine_map<()[s0, s1] -> (s0 * 32 + s1)>
module {
  func.func @f(%arg0: memref<64x64xf16, strided<[60, 1]>>, %arg1: index, %arg2: index, %arg3: index, %arg4: index, %arg5: memref<4x2xf16>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    gpu.launch blocks(%arg6, %arg7, %arg8) in (%arg12 = %c1, %arg13 = %c1, %arg14 = %c1) threads(%arg9, %arg10, %arg11) in (%arg15 = %c1, %arg16 = %c1, %arg17 = %c1) {
      %reinterpret_cast = memref.reinterpret_cast %arg0 to offset: [0], sizes: [3844], strides: [1] : memref<64x64xf16, strided<[60, 1]>> to memref<3844xf16>
      %alloc = memref.alloc() : memref<2x16x32xf16, #gpu.address_space<workgroup>>
      %reinterpret_cast_0 = memref.reinterpret_cast %alloc to offset: [0], sizes: [1024], strides: [1] : memref<2x16x32xf16, #gpu.address_space<workgroup>> to memref<1024xf16, #gpu.address_space<workgroup>>
      %0 = affine.apply #map()[%arg1]
      %1 = affine.apply #map1()[%arg1]
      %c512 = arith.constant 512 : index
      %2 = arith.muli %arg3, %c512 : index
      %3 = arith.addi %1, %2 : index
      %4 = affine.apply #map2()[%arg1, %arg2]
      %5 = nvgpu.device_async_copy %reinterpret_cast[%4], %reinterpret_cast_0[%3], 8, %arg4 : memref<3844xf16> to memref<1024xf16, #gpu.address_space<workgroup>>
      %6 = affine.apply #map1()[%arg1]
      %c512_1 = arith.constant 512 : index
      %7 = arith.muli %arg3, %c512_1 : index
      %8 = arith.addi %6, %7 : index
      %c256 = arith.constant 256 : index
      %9 = arith.addi %8, %c256 : index
      %10 = affine.apply #map2()[%arg1, %arg2]
      %c480 = arith.constant 480 : index
      %11 = arith.addi %10, %c480 : index
      %12 = nvgpu.device_async_copy %reinterpret_cast[%11], %reinterpret_cast_0[%9], 8, %arg4 : memref<3844xf16> to memref<1024xf16, #gpu.address_space<workgroup>>
      %13 = arith.addi %arg2, %c16 : index
      %14 = affine.apply #map1()[%arg1]
      %c512_2 = arith.constant 512 : index
      %15 = arith.muli %arg3, %c512_2 : index
      %16 = arith.addi %14, %15 : index
      %c272 = arith.constant 272 : index
      %17 = arith.addi %16, %c272 : index
      %18 = nvgpu.ldmatrix %reinterpret_cast_0[%17] {numTiles = 4 : i32, transpose = false} : memref<1024xf16, #gpu.address_space<workgroup>> -> vector<4x2xf16>
      %19 = affine.apply #map3()[%arg1, %arg2]
      %c528 = arith.constant 528 : index
      %20 = arith.addi %19, %c528 : index
      %21 = nvgpu.ldmatrix %reinterpret_cast_0[%20] {numTiles = 4 : i32, transpose = false} : memref<1024xf16, #gpu.address_space<workgroup>> -> vector<4x2xf16>
      gpu.terminator
    }
    return
  }
}
