// Threads print in the order of their numbers; an index, a small integer and a float.
// CHECK: thread 0 of 3: 7, 2.500000
// CHECK-NEXT: thread 1 of 3: 7, 2.500000
// CHECK-NEXT: thread 2 of 3: 7, 2.500000
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @say() kernel {
      %i = gpu.thread_id x
      %n = gpu.block_dim x
      %small = arith.constant 7 : i8
      %real = arith.constant 2.5 : f32
      gpu.printf "thread %lld of %lld: %d, %f\0A", %i, %n, %small, %real : index, index, i8, f32
      gpu.return
    }
  }
  func.func @main() {
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    gpu.launch_func @kernels::@say blocks in (%c1, %c1, %c1) threads in (%c3, %c1, %c1)
    return
  }
}
