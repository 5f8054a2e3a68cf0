// ----- MODULE
module attributes {gpu.container_module} {
  func.func private @other(memref<4x4xf32>)
  func.func @main(%a: memref<4x4xf32>, %b: memref<4x4xf32>, %x: f32, %i: index) {
    BODY
    return
  }
  gpu.module @m { gpu.func @k(%a: memref<4x4xf32>) kernel { gpu.return } }
}
// ----- GENERIC
linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]
    } outs(%a : memref<4x4xf32>) {
    ^bb0(%o: f32):
      %r = memref.load %b[%i, %i] : memref<4x4xf32>
      linalg.yield %r : f32
    }
