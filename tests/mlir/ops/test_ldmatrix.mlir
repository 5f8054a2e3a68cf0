// ----- PAYLOAD

module {
  func.func @f(%i: index, %j: index) -> vector<TILESx2xf16> {
    %tile = memref.alloc() : memref<64x64xf16, #gpu.address_space<workgroup>>
    %a = nvgpu.ldmatrix %tile[%i, %j] {numTiles = TILES : i32, transpose = TRANSPOSE}
      : memref<64x64xf16, #gpu.address_space<workgroup>> -> vector<TILESx2xf16>
    return %a : vector<TILESx2xf16>
  }
}
// ----- LOADS_OF_B
module {
  func.func @f(%c: memref<64x{vector}>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %tile = memref.alloc() : {tile}
    %lane = gpu.lane_id
    %row = affine.apply affine_map<()[s0] -> (s0 floordiv 8)>()[%lane]
    scf.for %i = %c0 to %c64 step %c1 {
{body}
    }
    return
  }
}
