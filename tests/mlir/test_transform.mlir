// ----- PAYLOAD

module {
  func.func @f(%m: memref<8xf32>) {
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %c1 = arith.constant 1 : index
    %z = arith.constant 0.0 : f32
    scf.for %i = %c0 to %c8 step %c1 {
      memref.store %z, %m[%i] : memref<8xf32>
    }
    return
  }
}
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
