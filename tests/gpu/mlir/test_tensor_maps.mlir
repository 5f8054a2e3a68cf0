// ----- PROGRAM
module attributes {gpu.container_module} {
  gpu.module @kernels {
    memref.global "private" @tile : memref<16x64xf16, #gpu.address_space<workgroup>> {alignment}
    gpu.func @k(%n: index, %map: {kind}, %a: memref<4xf32>) kernel {
      nvgpu.tma.prefetch.descriptor %map : {kind}
      %c0 = arith.constant 0 : index
      {body}
      gpu.return
    }
  }
  func.func @main(%any: memref<*xf16>, %a: memref<4xf32>) {
    %c1 = arith.constant 1 : index
    %map = nvgpu.tma.create.descriptor %any box[%c1, %c1] : memref<*xf16> -> {kind}
    gpu.launch_func @kernels::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
      args(%c1 : index, %map : {kind}, %a : memref<4xf32>)
    return
  }
}
// ----- CREATED
func.func @f(%a: {memref}, %any: index) {
      %c8 = arith.constant 8 : index
      %cn = arith.constant {n} : index
      %u = memref.cast %a : {memref} to memref<*x{element}>
      %m = nvgpu.tma.create.descriptor %u box[{box}] {attributes} : memref<*x{element}> -> {kind}
      return
    }
