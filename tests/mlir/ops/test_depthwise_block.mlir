// ----- PADDED

#input = affine_map<(n, c, h, w, y, x) -> (n, c, h + y, w + x)>
#weights = affine_map<(n, c, h, w, y, x) -> (c, y, x)>
#sums = affine_map<(n, c, h, w, y, x) -> (n, c, h, w)>
module {
  func.func @f(%image: memref<1x3x4x7xf32>, %w: memref<3x3x3xf32>, %out: memref<1x3x4x7xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c4 = arith.constant 4 : index
    %zero = arith.constant 0.0 : f32
    %padded = memref.reinterpret_cast %image to offset: [0], sizes: [1, 3, 6, 9], strides: [84, 28, 7, 1]
      : memref<1x3x4x7xf32> to memref<1x3x6x9xf32, strided<[84, 28, 7, 1]>>
    scf.for %c = %c0 to %c3 step %c1 {
      scf.for %h = %c0 to %c4 step %c2 {
        %input = memref.subview %padded[0, %c, %h, 0] [1, 1, 4, 9] [1, 1, 1, 1]
          : memref<1x3x6x9xf32, strided<[84, 28, 7, 1]>> to memref<1x1x4x9xf32, strided<[84, 28, 7, 1], offset: ?>>
        %window = memref.subview %w[%c, 0, 0] [1, 3, 3] [1, 1, 1]
          : memref<3x3x3xf32> to memref<1x3x3xf32, strided<[9, 3, 1], offset: ?>>
        %sums = memref.subview %out[0, %c, %h, 0] [1, 1, 2, 7] [1, 1, 1, 1]
          : memref<1x3x4x7xf32> to memref<1x1x2x7xf32, strided<[84, 28, 7, 1], offset: ?>>
        linalg.fill ins(%zero : f32) outs(%sums : memref<1x1x2x7xf32, strided<[84, 28, 7, 1], offset: ?>>)
        linalg.generic {
          indexing_maps = [#input, #weights, #sums],
          iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]
        } ins(%input, %window : memref<1x1x4x9xf32, strided<[84, 28, 7, 1], offset: ?>>, memref<1x3x3xf32, strided<[9, 3, 1], offset: ?>>)
          outs(%sums : memref<1x1x2x7xf32, strided<[84, 28, 7, 1], offset: ?>>)
          attrs = {contraction, planes = array<i64: 2, 1, 5, 3, 1, 8>} {
          ^bb0(%one: f32, %other: f32, %before: f32):
            %product = arith.mulf %one, %other : f32
            %sum = arith.addf %before, %product : f32
            linalg.yield %sum : f32
        }
      }
    }
    return
  }
}
