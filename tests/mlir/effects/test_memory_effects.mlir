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
// ----- KERNEL
module attributes {gpu.container_module} {
  func.func @host(%a: KIND) {
    %c1 = arith.constant 1 : index
    %x = arith.constant 1.0 : f32
    gpu.launch_func @m::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
      args(%x : f32, %a : KIND, %c1 : index)
    return
  }
  gpu.module @m {
    gpu.func @k(%x: f32, %a: KIND, %i: index) workgroup(%s : memref<16xf32, 3>) kernel {
      %v = arith.constant dense<0.0> : vector<4xf32>
      %m = arith.constant dense<true> : vector<4xi1>
      %n = arith.constant dense<1> : vector<4xindex>
      BODY
      gpu.return
    }
  }
}
