// ----- LIBRARY_CALL
gpu.module @m {
  llvm.func @__nv_expf(f32) -> f32
  llvm.func @k(%x: f32) {
    %y = llvm.call @__nv_expf(%x) : (f32) -> f32
    llvm.return
  }
}
// ----- ALL_REDUCE
gpu.module @m {
  gpu.func @k(%a: memref<64xf32>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %i = gpu.thread_id x
    %x = memref.load %a[%i] : memref<64xf32>
    %sum = gpu.all_reduce add %x uniform {
    } : (f32) -> f32
    memref.store %sum, %a[%i] : memref<64xf32>
    gpu.return
  }
}
