// ----- SQRT
gpu.module @m {
  llvm.func @k(%x: f32) -> f32 {
    %y = llvm.intr.sqrt(%x) : (f32) -> f32
    llvm.return %y : f32
  }
}
// ----- TILE
func.func @f(%m: memref<64x32xbf16>, %i: index, %j: index) {
  %a = x86.amx.tile_load %m[%i, %j] : memref<64x32xbf16> into !x86.amx.tile<16x32xbf16>
  x86.amx.tile_store %m[%j, %i], %a : memref<64x32xbf16>, !x86.amx.tile<16x32xbf16>
  return
}
// ----- DOT
func.func private @vpdpbusd_512(vector<16xi32>, vector<64xi8>, vector<64xi8>) -> vector<16xi32>
func.func @f(%s: vector<16xi32>, %u: vector<64xi8>, %v: vector<64xi8>) -> vector<16xi32> {
  %r = func.call @vpdpbusd_512(%s, %u, %v)
    : (vector<16xi32>, vector<64xi8>, vector<64xi8>) -> vector<16xi32>
  return %r : vector<16xi32>
}
// ----- RSQRT
gpu.module @m {
  gpu.func @k(%p: memref<4xf16>, %i: index) kernel {
    %x = memref.load %p[%i] : memref<4xf16>
    %y = math.rsqrt %x : f16
    memref.store %y, %p[%i] : memref<4xf16>
    gpu.return
  }
}
