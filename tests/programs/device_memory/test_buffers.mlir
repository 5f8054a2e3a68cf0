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
// ----- WITH_ITER_ARGS
func.func @main(%a: memref<4xf32>, %b: memref<4xf32>, %c: i1, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  BODY
  return
}
// ----- FOR
%r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %a, %k = %c0) -> (memref<4xf32>, index) {
  scf.yield %b, %i : memref<4xf32>, index
}
// ----- WHILE
%r:2 = scf.while (%x = %a, %k = %c0) : (memref<4xf32>, index) -> (index, memref<4xf32>) {
  %go = arith.cmpi slt, %k, %n : index
  scf.condition(%go) %k, %x : index, memref<4xf32>
} do {
^bb0(%k: index, %x: memref<4xf32>):
  scf.yield %b, %k : memref<4xf32>, index
}
