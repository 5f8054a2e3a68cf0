// ----- MODULE
module attributes {gpu.container_module} {
  gpu.module @m {
    gpu.func @count(%p: memref<i32>) kernel {
      %one = arith.constant 1 : i32
      %s = memref.cast %p : memref<i32> to memref<i32>
      %r = memref.atomic_rmw addi %one, %s[] : (i32, memref<i32>) -> i32
      gpu.return
    }
    gpu.func @store(%p: memref<i32>) kernel {
      %one = arith.constant 1 : i32
      memref.store %one, %p[] : memref<i32>
      gpu.return
    }
  }
  func.func @main(%a: memref<i32>) {
    %c1 = arith.constant 1 : index
    %s = gpu.wait async
    %t = gpu.wait async
    BODY
    return
  }
}
// ----- REFUSED
// refused: ^scf\.parallel at line \d+:\d+: found device work inside, allowed memref\.alloca_scope, scf\.
scf.parallel (%i) = (%c0) to (%n) step (%c1) {
  gpu.launch_func @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%a : memref<16xf32>)
  scf.reduce
}

// refused: ^func\.func at .*: found 2 blocks, allowed one: control flow by
cf.br ^next
^next:

// refused: ^gpu\.launch_func at .*: found async tokens, allowed synchronous
%t = gpu.wait async
%u = gpu.launch_func async [%t] @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1) args(%a : memref<16xf32>)
