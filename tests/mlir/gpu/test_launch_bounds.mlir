// ----- TEXT
func.func @f() {
  %one = arith.constant 1 : index
  gpu.launch blocks(%i, %j, %l) in (%p = %one, %q = %one, %r = %one)
             threads(%x, %y, %z) in (%s = %one, %t = %one, %u = %one) {
    gpu.barrier
    gpu.terminator
  }
  gpu.launch blocks(%i, %j, %l) in (%p = %one, %q = %one, %r = %one)
             threads(%x, %y, %z) in (%s = %one, %t = %one, %u = %one) {
    gpu.barrier
    gpu.terminator
  } {nvvm.cluster_dim = array<i32: 1, 2, 1>, nvvm.minctasm = 2 : i32, tuner.tile_grid = array<i32: 4, 2>}
  return
}
