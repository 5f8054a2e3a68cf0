// GPUX on the stream of whoever calls: the function takes it as an argument, and from Python as ``stream=``.
//
//   tuner run examples/gpux_users_stream.mlir --target simulator --trace --compare
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
  func.func @main(%a: memref<128xf32>, %b: memref<128xf32>, %stream: !gpux.StreamType) {
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c32 = arith.constant 32 : index
    %two = arith.constant 2.0 : f32
    %x = "gpux.alloc"(%stream) : (!gpux.StreamType) -> memref<128xf32>
    %y = "gpux.alloc"(%stream) : (!gpux.StreamType) -> memref<128xf32>
    "gpux.memcpy"(%stream, %x, %a) : (!gpux.StreamType, memref<128xf32>, memref<128xf32>) -> ()
    "gpux.launch_func"(%stream, %c4, %c1, %c1, %c32, %c1, %c1, %x, %y, %two) {kernel = @kernels::@scale,
      operandSegmentSizes = array<i32: 0, 1, 1, 1, 1, 1, 1, 1, 0, 3>}
      : (!gpux.StreamType, index, index, index, index, index, index, memref<128xf32>, memref<128xf32>, f32) -> ()
    "gpux.memcpy"(%stream, %b, %y) : (!gpux.StreamType, memref<128xf32>, memref<128xf32>) -> ()
    "gpux.dealloc"(%stream, %x) : (!gpux.StreamType, memref<128xf32>) -> ()
    "gpux.dealloc"(%stream, %y) : (!gpux.StreamType, memref<128xf32>) -> ()
    "gpux.wait"(%stream) : (!gpux.StreamType) -> ()
    return
  }
}
