// ----- CHOSEN
func.func @main(%flag: i1) {
  %t = gpu.wait async
  %u = arith.select %flag, %t, %t : !gpu.async.token
  gpu.wait [%u]
  return
}
// ----- EVERY_KIND
%x = arith.constant 0.0 : f32
%s = arith.constant 64 : i32
%d = gpu.alloc () : memref<16xf32>
gpu.memset %d, %x : memref<16xf32>, f32
gpu.memcpy %d, %a : memref<16xf32>, memref<16xf32>
gpu.launch_func @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)
  dynamic_shared_memory_size %s args(%d : memref<16xf32>)
gpu.dealloc %d : memref<16xf32>
// ----- WHOLE
%wide = gpu.alloc () : memref<32xf32>
%part0_ = memref.subview %wide[0] [16] [1] : memref<32xf32> to memref<16xf32, strided<[1]>>
%part0 = memref.cast %part0_ : memref<16xf32, strided<[1]>> to memref<16xf32, strided<[1], offset: ?>>
%part8_ = memref.subview %wide[8] [16] [1] : memref<32xf32> to memref<16xf32, strided<[1], offset: 8>>
%part8 = memref.cast %part8_ : memref<16xf32, strided<[1], offset: 8>> to memref<16xf32, strided<[1], offset: ?>>
%part16_ = memref.subview %wide[16] [16] [1] : memref<32xf32> to memref<16xf32, strided<[1], offset: 16>>
%part16 = memref.cast %part16_ : memref<16xf32, strided<[1], offset: 16>> to memref<16xf32, strided<[1], offset: ?>>
