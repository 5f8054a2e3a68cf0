// ----- PAYLOAD

module {
  func.func @f(%i: index, %j: index) -> vector<TILESx2xf16> {
    %tile = memref.alloc() : memref<64x64xf16, #gpu.address_space<workgroup>>
    %a = nvgpu.ldmatrix %tile[%i, %j] {numTiles = TILES : i32, transpose = TRANSPOSE}
      : memref<64x64xf16, #gpu.address_space<workgroup>> -> vector<TILESx2xf16>
    return %a : vector<TILESx2xf16>
  }
}
