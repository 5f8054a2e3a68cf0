// ----- PROGRAM
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @fails(%wrong: i1, %memory: memref<2xf32>) kernel {
      %i = gpu.thread_id x
      %c9 = arith.constant 9 : index
      %one = arith.constant 1.0 : f32
      gpu.printf "thread %lld was here\0A", %i : index
      FAILURE
      gpu.printf "thread %lld went on\0A", %i : index
      gpu.return
    }
  }
  func.func private @printNewline()
  func.func @main() {
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %wrong = arith.constant false
    %zero = arith.constant 0.0 : f32
    %memory = memref.alloc() : memref<2xf32>
    linalg.fill ins(%zero : f32) outs(%memory : memref<2xf32>)
    vector.print str "before the kernel\0A"
    gpu.launch_func @kernels::@fails blocks in (%c1, %c1, %c1) threads in (%c2, %c1, %c1)
      args(%wrong : i1, %memory : memref<2xf32>)
    memref.dealloc %memory : memref<2xf32>
    return
  }
}
// ----- ENDLESS
scf.while : () -> () {
  %v = memref.atomic_rmw addf %one, %memory[%i] : (f32, memref<2xf32>) -> f32
  %waits = arith.cmpf oeq, %v, %v : f32
  scf.condition(%waits)
} do {
  scf.yield
}
