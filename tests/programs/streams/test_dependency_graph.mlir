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
