// ----- PAYLOAD

func.func @f(%a: tensor<8x64xf32>, %w: memref<64x100xf32> {tuner.weight}, %c: tensor<8x48xf32>,
             %d: tensor<8x16xf32>) -> (tensor<8x48xf32>, tensor<8x16xf32>) {
  %c0 = arith.constant 0 : index
  %c48 = arith.constant 48 : index
  %c96 = arith.constant 96 : index
  %zero = arith.constant 0.0 : f32
  %weight = bufferization.to_tensor %w restrict : memref<64x100xf32> to tensor<64x100xf32>
  %sums = scf.for %j = %c0 to %c96 step %c48 iter_args(%s = %c) -> (tensor<8x48xf32>) {
    %b = tensor.extract_slice %weight[0, %j] [64, 48] [1, 1] : tensor<64x100xf32> to tensor<64x48xf32>
    %p = linalg.matmul ins(%a, %b : tensor<8x64xf32>, tensor<64x48xf32>) outs(%s : tensor<8x48xf32>)
      -> tensor<8x48xf32>
    scf.yield %p : tensor<8x48xf32>
  }
  %rest = tensor.extract_slice %weight[0, 96] [64, 4] [1, 1] : tensor<64x100xf32> to tensor<64x4xf32>
  %last = tensor.pad %rest low[0, 0] high[0, 12] {
  ^bb0(%i: index, %k: index):
    tensor.yield %zero : f32
  } : tensor<64x4xf32> to tensor<64x16xf32>
  %q = linalg.matmul ins(%a, %last : tensor<8x64xf32>, tensor<64x16xf32>) outs(%d : tensor<8x16xf32>)
    -> tensor<8x16xf32>
  return %sums, %q : tensor<8x48xf32>, tensor<8x16xf32>
}
// ----- ONE_PANEL

func.func @f(%a: tensor<8x64xf32>, %w: memref<64x40xf32> {tuner.weight}, %c: tensor<8x40xf32>)
    -> tensor<8x40xf32> {
  %weight = bufferization.to_tensor %w restrict : memref<64x40xf32> to tensor<64x40xf32>
  %p = linalg.matmul ins(%a, %weight : tensor<8x64xf32>, tensor<64x40xf32>) outs(%c : tensor<8x40xf32>)
    -> tensor<8x40xf32>
  return %p : tensor<8x40xf32>
}
// ----- COPIES

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
