// ----- TWO_MODULES
module attributes {gpu.container_module} {
  func.func @host(%a: memref<4xf32>) {
    %c1 = arith.constant 1 : index
    gpu.launch_func @first::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%a : memref<4xf32>)
    gpu.launch_func @second::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    gpu.launch_func @third::@other blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    return
  }
  gpu.module @first { gpu.func @k(%a: memref<4xf32>) kernel { gpu.return } }
  gpu.module @second { gpu.func @k() kernel { gpu.barrier gpu.return } }
  gpu.module @third { gpu.func @other() kernel { gpu.return } }
}
