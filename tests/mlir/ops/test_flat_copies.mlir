// ----- PAYLOAD

module {
  func.func @f(%from: memref<64x64xf16, strided<[60, 1]>>, %row: index, %k: index, %stage: index, %left: index,
               %out: memref<4x2xf16>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    gpu.launch blocks(%i, %j, %l) in (%p = %c1, %q = %c1, %r = %c1)
               threads(%x, %y, %z) in (%s = %c1, %t = %c1, %u = %c1) {
      %tile = memref.alloc() : memref<2x16x32xf16, #gpu.address_space<workgroup>>
      %row8 = affine.apply affine_map<()[s0] -> (s0 + 8)>()[%row]
      %copy0 = nvgpu.device_async_copy %from[%row, %k], %tile[%stage, %row, %c0], 8, %left
        : memref<64x64xf16, strided<[60, 1]>> to memref<2x16x32xf16, #gpu.address_space<workgroup>>
      %copy1 = nvgpu.device_async_copy %from[%row8, %k], %tile[%stage, %row8, %c0], 8, %left
        : memref<64x64xf16, strided<[60, 1]>> to memref<2x16x32xf16, #gpu.address_space<workgroup>>
      %k16 = arith.addi %k, %c16 : index
      INSIDE
      %first = nvgpu.ldmatrix %tile[%stage, %row8, %c16] {numTiles = 4 : i32, transpose = false}
        : memref<2x16x32xf16, #gpu.address_space<workgroup>> -> vector<4x2xf16>
      %second = nvgpu.ldmatrix %tile[%c1, %row, %k16] {numTiles = 4 : i32, transpose = false}
        : memref<2x16x32xf16, #gpu.address_space<workgroup>> -> vector<4x2xf16>
      gpu.terminator
    }
    return
  }
}
