// ----- MODULE
module attributes {gpu.container_module} {
  func.func @main(%a: memref<4xf32>, %b: memref<4xf32>, %c: memref<4xf32>, %x: f32, %flag: i1, %n: index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    BODY
    return
  }
  gpu.module @m {
    gpu.func @read(%a: memref<4xf32>) kernel {
      %c0 = arith.constant 0 : index
      %v = memref.load %a[%c0] : memref<4xf32>
      gpu.return
    }
    gpu.func @write(%a: memref<4xf32>) kernel {
      %c0 = arith.constant 0 : index
      %v = arith.constant 0.0 : f32
      memref.store %v, %a[%c0] : memref<4xf32>
      gpu.return
    }
  }
}
