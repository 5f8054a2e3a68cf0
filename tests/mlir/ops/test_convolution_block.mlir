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
