// ----- ONE_COPY

module {
  func.func @f(%a: memref<64xDTYPE>, %i: index, %n: index) {
    %tile = memref.alloc() : memref<64xDTYPE, #gpu.address_space<workgroup>>
    %copy = nvgpu.device_async_copy %a[%i], %tile[%i], ELEMENTS, %n : memref<64xDTYPE> to memref<64xDTYPE, #gpu.address_space<workgroup>>
    return
  }
}
// ----- TWO_COPIES

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
// ----- TWO_LOOPS

!tile = memref<4xf32, #gpu.address_space<workgroup>>
module {
  func.func @f(%a: memref<64xf32>, %c: memref<64xf32>) {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c64 = arith.constant 64 : index
    %tile = memref.alloc() : !tile
    scf.for %i = %c0 to %c64 step %c4 {
      %in = vector.load %a[%i] : memref<64xf32>, vector<2xf32>
      vector.store %in, %tile[%c0] : !tile, vector<2xf32>
      vector.store %in, %tile[%c4] : !tile, vector<2xf32>
      %out = vector.load %tile[%c4] : !tile, vector<2xf32>
      vector.store %out, %c[%i] : memref<64xf32>, vector<2xf32>
    }
    scf.for %i = %c0 to %c64 step %c4 {
      %out = vector.load %tile[%c0] : !tile, vector<2xf32>
      vector.store %out, %c[%i] : memref<64xf32>, vector<2xf32>
    }
    return
  }
}
// ----- ANOTHER_READ
      %k{number} = arith.constant {number} : index
      %at{number} = arith.addi {index}, %k{number} : index
      %read{number} = nvgpu.ldmatrix %tile[%stage, %at{number}, %c0] {numTiles = 4 : i32, transpose = false}
        : memref<2x16x32xf16, #gpu.address_space<workgroup>> -> vector<4x2xf16>
      vector.store %read{number}, %out[%c0, %c0] : memref<4x2xf16>, vector<4x2xf16>
// ----- CLEAN_UP
transform.apply_patterns to %func {
  transform.apply_patterns.canonicalization
} {apply_cse} : !transform.any_op
