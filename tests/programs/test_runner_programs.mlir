// ----- SQUARES
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @squares(%a: memref<2x3xf32>, %first: i32) kernel {
      %i = gpu.block_id x
      %j = gpu.thread_id x
      %s = arith.addi %i, %j : index
      %n = arith.index_cast %s : index to i32
      %m = arith.addi %n, %first : i32
      %x = arith.sitofp %m : i32 to f32
      %y = arith.mulf %x, %x : f32
      memref.store %y, %a[%i, %j] : memref<2x3xf32>
      gpu.return
    }
  }
  func.func private @printMemrefF32(memref<*xf32>) INTERFACE
  func.func private @printI64(i64)
  func.func private @printNewline()
  func.func @main() {
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %first = arith.constant 1 : i32
    %n = arith.constant 42 : i64
    %a = memref.alloc() : memref<2x3xf32>
    gpu.launch_func @kernels::@squares blocks in (%c2, %c1, %c1) threads in (%c3, %c1, %c1)
      args(%a : memref<2x3xf32>, %first : i32)
    %u = memref.cast %a : memref<2x3xf32> to memref<*xf32>
    call @printMemrefF32(%u) : (memref<*xf32>) -> ()
    call @printI64(%n) : (i64) -> ()
    call @printNewline() : () -> ()
    memref.dealloc %a : memref<2x3xf32>
    return
  }
}
// ----- VECTORS
func.func @main() {
  %v = arith.constant dense<[[1.5, 2.0], [3.0, -4.0]]> : vector<2x2xf32>
  vector.print %v : vector<2x2xf32>
  %n = arith.constant 7 : index
  vector.print %n : index
  vector.print str "end\0A"
  return
}
