// ----- PAYLOAD

module {
  func.func @f(%a: memref<64x64xf16>, %c: memref<64x64xf16>, %i: index, %j: index) {
    %tile = memref.alloc() : memref<16xCOLUMNSxf16, #gpu.address_space<workgroup>>
    %other = memref.alloc() {alignment = 64 : i64} : memref<16xCOLUMNSxf16, #gpu.address_space<workgroup>>
    %copy = nvgpu.device_async_copy %a[%i, %j], %tile[%i, %j], 8 {bypassL1} : memref<64x64xf16> to memref<16xCOLUMNSxf16, #gpu.address_space<workgroup>>
    %fragment = nvgpu.ldmatrix %tile[%i, %j] {numTiles = 4 : i32, transpose = false}
      : memref<16xCOLUMNSxf16, #gpu.address_space<workgroup>> -> vector<4x2xf16>
    %in = vector.load %a[%i, %j] : memref<64x64xf16>, vector<8xf16>
    vector.store %in, %other[%i, %j] : memref<16xCOLUMNSxf16, #gpu.address_space<workgroup>>, vector<8xf16>
    %out = vector.load %other[%j, %i] : memref<16xCOLUMNSxf16, #gpu.address_space<workgroup>>, vector<8xf16>
    vector.store %out, %c[%i, %j] : memref<64x64xf16>, vector<8xf16>
    READ
    return
  }
}
// ----- BYTES
module {
  func.func @f(%i: index, %j: index) -> i8 {
    %tile = memref.alloc() : {tile}
    %x = memref.load %tile[%i, %j] : {tile}
    return %x : i8
  }
}
