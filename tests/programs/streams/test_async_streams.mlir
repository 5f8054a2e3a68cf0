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
