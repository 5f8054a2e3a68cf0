// ----- TWO_PRODUCTS
func.func @main(%a: memref<8x4xf32>, %b: memref<4x16xf32>,
                %d: memref<8x4xf32>, %e: memref<4x16xf32>, %c: memref<16x16xf32>) {
  %lo = memref.subview %c[0, 0] [8, 16] [1, 1] : memref<16x16xf32> to memref<8x16xf32, strided<[16, 1]>>
  %hi = memref.subview %c[SECOND, 0] [8, 16] [1, 1]
    : memref<16x16xf32> to memref<8x16xf32, strided<[16, 1], offset: OFFSET>>
  linalg.matmul ins(%a, %b : memref<8x4xf32>, memref<4x16xf32>) outs(%lo : memref<8x16xf32, strided<[16, 1]>>)
  linalg.matmul ins(%d, %e : memref<8x4xf32>, memref<4x16xf32>)
    outs(%hi : memref<8x16xf32, strided<[16, 1], offset: OFFSET>>)
  return
}
// ----- MODULE
module attributes {gpu.container_module} {
  gpu.module @m {
    gpu.func @add(%a: memref<16xf32>, %x: f32) kernel {
      %i = gpu.thread_id x
      %v = memref.load %a[%i] : memref<16xf32>
      %w = arith.addf %v, %x : f32
      memref.store %w, %a[%i] : memref<16xf32>
      gpu.return
    }
  }
  func.func private @region(%s: !gpux.StreamType, %d: memref<16xf32>, %x: f32) -> memref<16xf32> {
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    gpux.launch_func %s @m::@add blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)
      args(%d : memref<16xf32>, %x : f32)
    return %d : memref<16xf32>
  }
  func.func private @twice(%s: !gpux.StreamType, %d: memref<16xf32>, %x: f32) -> memref<16xf32> {
    %once = call @region(%s, %d, %x) : (!gpux.StreamType, memref<16xf32>, f32) -> memref<16xf32>
    %both = call @region(%s, %once, %x) : (!gpux.StreamType, memref<16xf32>, f32) -> memref<16xf32>
    return %both : memref<16xf32>
  }
  func.func @main(ARGUMENTS) {
    BEGIN
    %one = arith.constant 1.0 : f32
    %two = arith.constant 2.0 : f32
    %s = arith.select %first, %p, %q : !gpux.StreamType
    %d = gpux.alloc (%s) : memref<16xf32, 1>
    %e = memref.memory_space_cast %d : memref<16xf32, 1> to memref<16xf32>
    gpux.memcpy %s, %e, %a : memref<16xf32>, memref<16xf32>
    %f = func.call @twice(%s, %e, %one) : (!gpux.StreamType, memref<16xf32>, f32) -> memref<16xf32>
    gpux.wait %s
    %t = scf.if %first -> !gpux.StreamType {
      scf.yield %q : !gpux.StreamType
    } else {
      scf.yield %p : !gpux.StreamType
    }
    %g = func.call @region(%t, %f, %two) : (!gpux.StreamType, memref<16xf32>, f32) -> memref<16xf32>
    gpux.memcpy %t, %a, %g : memref<16xf32>, memref<16xf32>
    gpux.dealloc %t, %g : memref<16xf32>
    gpux.wait %t
    return
  }
}
// ----- OWN
%device = "gpux.create_device"() : () -> !gpux.DeviceType
%context = "gpux.create_context"(%device) : (!gpux.DeviceType) -> !gpux.ContextType
%p = "gpux.create_stream"(%device, %context) : (!gpux.DeviceType, !gpux.ContextType) -> !gpux.StreamType
%q = gpux.create_stream : !gpux.StreamType
