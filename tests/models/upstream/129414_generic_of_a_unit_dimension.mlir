// A generic in place on a memref with a dimension of size 1, whose region ignores its input.
// issue: https://github.com/llvm/llvm-project/issues/129414
// arguments: [[[1, 2]], [[3, 4]], [[5, 6]]]
// outputs: [[[7, 7]], [[7, 7]], [[7, 7]]]

#map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
func.func @main(%x: memref<3x1x2xi32>) {
  %c7 = arith.constant 7 : i32
  linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : memref<3x1x2xi32>) outs(%x : memref<3x1x2xi32>) {
  ^bb0(%in: i32, %out: i32):
    linalg.yield %c7 : i32
  }
  return
}
