// ----- PAYLOAD

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
