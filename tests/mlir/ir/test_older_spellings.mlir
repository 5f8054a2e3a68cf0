// ----- OLD
module attributes {gpu.container_module} {
  gpu.module @m {
    gpu.func @k(%x: f32, %offset: i32, %width: i32) kernel {
      %n = "gpu.block_dim"() {dimension = "x"} : () -> (index)
      %t = "gpu.thread_id"() { dimension = "y" } : () -> index
      %s = "gpu.all_reduce"(%x) ({}) {op = "add"} : (f32) -> (f32)
      %r = "gpu.all_reduce"(%x) ({
      ^bb(%a: f32, %b: f32):
        %sum = arith.addf %a, %b : f32
        "gpu.yield"(%sum) : (f32) -> ()
      }) {op = "mul"} : (f32) -> (f32)
      %v, %p = "gpu.shuffle"(%x, %offset, %width) {mode = "xor"} : (f32, i32, i32) -> (f32, i1)
      %own = gpu.dynamic_shared_memory : memref<?xi8, 3>
      gpu.return
    }
    "gpu.module_end"() : () -> ()
  }
}
