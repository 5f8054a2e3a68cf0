// ----- PAYLOAD

!b = memref<32x200xf32>
!packed = memref<4x32x64xf32>
module {
  func.func private @use(!packed)
  func.func @f(%a: memref<8x64xf32>, %b: !b) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %c200 = arith.constant 200 : index
    %zero = arith.constant 0.0 : f32
    %packed = memref.alloc() : !packed
    scf.for %j = %c0 to %c200 step %c64 {
      %panel = affine.apply affine_map<(d) -> (d floordiv 64)>(%j)
      %view = memref.subview %packed[%panel, 0, 0] [1, 32, 64] [1, 1, 1]
        : !packed to memref<32x64xf32, strided<[64, 1], offset: ?>>
      scf.for %i = %c0 to %c32 step %c1 {
        %x = vector.transfer_read %b[%i, %j], %zero {in_bounds = [false]} : !b, vector<64xf32>
        vector.transfer_write %x, %view[%i, %c0] {in_bounds = [true]}
          : vector<64xf32>, memref<32x64xf32, strided<[64, 1], offset: ?>>
      }
    }
    func.call @use(%packed) : (!packed) -> ()
    return
  }
}
