// GPUX, Intel's GPU dialect with explicit streams: two kernels on two streams that the program makes itself.
// Each stream copies in, computes and copies out; the second one's work needs nothing of the first one's.
//
//   tuner run examples/gpux_own_streams.mlir --target simulator --trace --compare
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @scale(%in: memref<128xf32>, %out: memref<128xf32>, %factor: f32) kernel {
      %block = gpu.block_id x
      %size = gpu.block_dim x
      %thread = gpu.thread_id x
      %start = arith.muli %block, %size : index
      %i = arith.addi %start, %thread : index
      %old = memref.load %in[%i] : memref<128xf32>
      %new = arith.mulf %old, %factor : f32
      memref.store %new, %out[%i] : memref<128xf32>
      gpu.return
    }
  }
  func.func @main(%a: memref<128xf32>, %b: memref<128xf32>, %c: memref<128xf32>, %d: memref<128xf32>) {
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c32 = arith.constant 32 : index
    %two = arith.constant 2.0 : f32
    %three = arith.constant 3.0 : f32
    %s0 = "gpux.create_stream"() : () -> !gpux.StreamType
    %s1 = "gpux.create_stream"() : () -> !gpux.StreamType
    %x0 = "gpux.alloc"(%s0) : (!gpux.StreamType) -> memref<128xf32>
    %y0 = "gpux.alloc"(%s0) : (!gpux.StreamType) -> memref<128xf32>
    %x1 = "gpux.alloc"(%s1) : (!gpux.StreamType) -> memref<128xf32>
    %y1 = "gpux.alloc"(%s1) : (!gpux.StreamType) -> memref<128xf32>
    "gpux.memcpy"(%s0, %x0, %a) : (!gpux.StreamType, memref<128xf32>, memref<128xf32>) -> ()
    "gpux.memcpy"(%s1, %x1, %b) : (!gpux.StreamType, memref<128xf32>, memref<128xf32>) -> ()
    "gpux.launch_func"(%s0, %c4, %c1, %c1, %c32, %c1, %c1, %x0, %y0, %two) {kernel = @kernels::@scale,
      operandSegmentSizes = array<i32: 0, 1, 1, 1, 1, 1, 1, 1, 0, 3>}
      : (!gpux.StreamType, index, index, index, index, index, index, memref<128xf32>, memref<128xf32>, f32) -> ()
    "gpux.launch_func"(%s1, %c4, %c1, %c1, %c32, %c1, %c1, %x1, %y1, %three) {kernel = @kernels::@scale,
      operandSegmentSizes = array<i32: 0, 1, 1, 1, 1, 1, 1, 1, 0, 3>}
      : (!gpux.StreamType, index, index, index, index, index, index, memref<128xf32>, memref<128xf32>, f32) -> ()
    "gpux.memcpy"(%s0, %c, %y0) : (!gpux.StreamType, memref<128xf32>, memref<128xf32>) -> ()
    "gpux.memcpy"(%s1, %d, %y1) : (!gpux.StreamType, memref<128xf32>, memref<128xf32>) -> ()
    "gpux.dealloc"(%s0, %x0) : (!gpux.StreamType, memref<128xf32>) -> ()
    "gpux.dealloc"(%s0, %y0) : (!gpux.StreamType, memref<128xf32>) -> ()
    "gpux.dealloc"(%s1, %x1) : (!gpux.StreamType, memref<128xf32>) -> ()
    "gpux.dealloc"(%s1, %y1) : (!gpux.StreamType, memref<128xf32>) -> ()
    "gpux.wait"(%s0) : (!gpux.StreamType) -> ()
    "gpux.wait"(%s1) : (!gpux.StreamType) -> ()
    "gpux.destroy_stream"(%s0) : (!gpux.StreamType) -> ()
    "gpux.destroy_stream"(%s1) : (!gpux.StreamType) -> ()
    return
  }
}
