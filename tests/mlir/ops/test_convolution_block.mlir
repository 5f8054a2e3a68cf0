// ----- DYNAMIC

module {
  func.func @f(%x: memref<?x3xf32>, %w: memref<3x16xf32>, %y: memref<?x16xf32>) {
    linalg.generic {
      indexing_maps = [affine_map<(n, f, c) -> (n, c)>, affine_map<(n, f, c) -> (c, f)>,
                       affine_map<(n, f, c) -> (n, f)>],
      iterator_types = ["parallel", "parallel", "reduction"]
    } ins(%x, %w : memref<?x3xf32>, memref<3x16xf32>) outs(%y : memref<?x16xf32>) attrs = {contraction} {
      ^bb0(%one: f32, %other: f32, %before: f32):
        %product = arith.mulf %one, %other : f32
        %sum = arith.addf %before, %product : f32
        linalg.yield %sum : f32
    }
    return
  }
}
// ----- K_GROUPS

module {
  func.func @f(%x: memref<1x2xi32>, %w: memref<2x16xi32>, %y: memref<1x16xf32>) {
    %zero = arith.constant 0.0 : f32
    linalg.fill ins(%zero : f32) outs(%y : memref<1x16xf32>)
    linalg.generic {
      indexing_maps = [affine_map<(n, f, c) -> (n, c)>, affine_map<(n, f, c) -> (c, f)>,
                       affine_map<(n, f, c) -> (n, f)>],
      iterator_types = ["parallel", "parallel", "reduction"]
    } ins(%x, %w : memref<1x2xi32>, memref<2x16xi32>) outs(%y : memref<1x16xf32>) attrs = {contraction} {
      ^bb0(%one: i32, %other: i32, %before: f32):
        linalg.yield %before : f32
    }
    return
  }
}
// ----- PAYLOAD

module {
  func.func @f(%x: memref<1x3x6x6xf32>, %w: memref<3x3x3x32xf32> {tuner.weight},
               %y: memref<1x32x4x4xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c32 = arith.constant 32 : index
    %step = arith.constant FILTERS : index
    %zero = arith.constant 0.0 : f32
    %sums = memref.alloc() : memref<1xFILTERSx1x4xf32>
    scf.for %i = %c0 to %c32 step %step {
      scf.for %j = %c0 to %c4 step %c1 {
        %input = memref.subview %x[0, 0, %j, 0] [1, 3, 3, 6] [1, 1, 1, 1]
          : memref<1x3x6x6xf32> to memref<1x3x3x6xf32, strided<[108, 36, 6, 1], offset: ?>>
        %weights = memref.subview %w[0, 0, 0, %i] [3, 3, 3, FILTERS] [1, 1, 1, 1]
          : memref<3x3x3x32xf32> to memref<3x3x3xFILTERSxf32, strided<[288, 96, 32, 1], offset: ?>>
        FILL
        linalg.generic {
          indexing_maps = [affine_map<(n, f, h, w, a, b, c) -> (n, c, h + a, w + b)>,
                           affine_map<(n, f, h, w, a, b, c) -> (a, b, c, f)>,
                           affine_map<(n, f, h, w, a, b, c) -> (n, f, h, w)>],
          iterator_types = ["parallel", "parallel", "parallel", "parallel",
                            "reduction", "reduction", "reduction"]
        } ins(%input, %weights : memref<1x3x3x6xf32, strided<[108, 36, 6, 1], offset: ?>>, memref<3x3x3xFILTERSxf32, strided<[288, 96, 32, 1], offset: ?>>) outs(%sums : memref<1xFILTERSx1x4xf32>) attrs = {contraction} {
          ^bb0(%one: f32, %other: f32, %before: f32):
            %product = arith.mulf %one, %other : f32
            %sum = arith.addf %before, %product : f32
            linalg.yield %sum : f32
        }
        %out = memref.subview %y[0, %i, %j, 0] [1, FILTERS, 1, 4] [1, 1, 1, 1]
          : memref<1x32x4x4xf32> to memref<1xFILTERSx1x4xf32, strided<[512, 16, 4, 1], offset: ?>>
        linalg.copy ins(%sums : memref<1xFILTERSx1x4xf32>) outs(%out : memref<1xFILTERSx1x4xf32, strided<[512, 16, 4, 1], offset: ?>>)
      }
    }
    return
  }
}
// ----- ROWS

module {
  func.func @f(%x: memref<6x18xf32>, %w: memref<3x3xf32>, %y: memref<4x16xf32>) {
    %zero = arith.constant 0.0 : f32
    linalg.fill ins(%zero : f32) outs(%y : memref<4x16xf32>)
    linalg.generic {
      indexing_maps = [affine_map<(h, w, a, b) -> (h + a, w + b)>, affine_map<(h, w, a, b) -> (a, b)>,
                       affine_map<(h, w, a, b) -> (h, w)>],
      iterator_types = ["parallel", "parallel", "reduction", "reduction"]
    } ins(%x, %w : memref<6x18xf32>, memref<3x3xf32>) outs(%y : memref<4x16xf32>) attrs = {contraction} {
      ^bb0(%one: f32, %other: f32, %before: f32):
        %product = arith.mulf %one, %other : f32
        %sum = arith.addf %before, %product : f32
        linalg.yield %sum : f32
    }
    return
  }
}
