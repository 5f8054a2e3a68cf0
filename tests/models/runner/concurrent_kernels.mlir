// Three kernels on streams of their own meet: each counts itself, then waits until all have.
// CHECK: arrived: 3
// CHECK-NEXT: arrived: 3
// CHECK-NEXT: arrived: 3
// CHECK-NEXT: 3
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @meet(%arrived: memref<2xi32>) kernel {
      %c1 = arith.constant 1 : index
      %none = arith.constant 0 : i32
      %one = arith.constant 1 : i32
      %all = arith.constant 3 : i32
      %before = memref.atomic_rmw addi %one, %arrived[%c1] : (i32, memref<2xi32>) -> i32
      %last = scf.while (%seen = %before) : (i32) -> i32 {
        %now = memref.atomic_rmw addi %none, %arrived[%c1] : (i32, memref<2xi32>) -> i32
        %waits = arith.cmpi slt, %now, %all : i32
        scf.condition(%waits) %now : i32
      } do {
      ^bb0(%seen: i32):
        scf.yield %seen : i32
      }
      gpu.printf "arrived: %d\0A", %last : i32
      gpu.return
    }
  }
  func.func @main() {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %none = arith.constant 0 : i32
    %arrived = gpu.alloc host_shared () : memref<2xi32>
    memref.store %none, %arrived[%c0] : memref<2xi32>
    memref.store %none, %arrived[%c1] : memref<2xi32>
    %s0 = gpu.wait async
    %s1 = gpu.wait async
    %s2 = gpu.wait async
    %t0 = gpu.launch_func async [%s0] @kernels::@meet blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
      args(%arrived : memref<2xi32>)
    %t1 = gpu.launch_func async [%s1] @kernels::@meet blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
      args(%arrived : memref<2xi32>)
    %t2 = gpu.launch_func async [%s2] @kernels::@meet blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
      args(%arrived : memref<2xi32>)
    gpu.wait [%t0, %t1, %t2]
    %found = memref.load %arrived[%c1] : memref<2xi32>
    vector.print %found : i32
    gpu.dealloc %arrived : memref<2xi32>
    return
  }
}
