// ----- TWO_STREAMS
func.func @f(%a: memref<4xf32>) {
  %s = "gpux.create_stream"() : () -> !gpux.StreamType
  %t = "gpux.create_stream"() : () -> !gpux.StreamType
  %d = "gpux.alloc"(%s) : (!gpux.StreamType) -> memref<4xf32>
  "gpux.memcpy"(%t, %d, %a) : (!gpux.StreamType, memref<4xf32>, memref<4xf32>) -> ()
  return
}
// ----- SIZE_OF_THE_BRANCH
func.func @f(%a: memref<?xf32>, %flag: i1, %n: index) {
  %c1 = arith.constant 1 : index
  %r = scf.if %flag -> (memref<?xf32>) {
    %m = arith.addi %n, %c1 : index
    %x = gpu.alloc (%m) : memref<?xf32>
    scf.yield %x : memref<?xf32>
  } else {
    scf.yield %a : memref<?xf32>
  }
  gpu.memcpy %a, %r : memref<?xf32>, memref<?xf32>
  return
}
// ----- OF_A_STREAM
%s = "gpux.create_stream"() : () -> !gpux.StreamType
%d = "gpux.alloc"(%s) : (!gpux.StreamType) -> memref<4xf32>
"gpux.memcpy"(%s, %d, %a) : (!gpux.StreamType, memref<4xf32>, memref<4xf32>) -> ()
"gpux.wait"(%s) : (!gpux.StreamType) -> ()
"gpux.destroy_stream"(%s) : (!gpux.StreamType) -> ()
// ----- ADDRESS_TAKEN
%d = gpu.alloc () : memref<4xf32>
gpu.memcpy %d, %a : memref<4xf32>, memref<4xf32>
%n = memref.extract_aligned_pointer_as_index %d : memref<4xf32> -> index
memref.store %n, %p[] : memref<index>
// ----- HANDED_ON
%r = scf.if %flag -> (memref<4xf32>) {
  %x = gpu.alloc () : memref<4xf32>
  scf.yield %x : memref<4xf32>
} else {
  scf.yield %a : memref<4xf32>
}
gpu.memcpy %a, %r : memref<4xf32>, memref<4xf32>
// ----- OF_A_DESCRIPTOR
%x = gpu.alloc () : memref<4x4xf32>
%y = memref.cast %x : memref<4x4xf32> to memref<?x4xf32>
%any = memref.cast %y : memref<?x4xf32> to memref<*xf32>
%map = nvgpu.tma.create.descriptor %any box[%i, %i] : memref<*xf32> -> !nvgpu.tensormap.descriptor<tensor = memref<4x4xf32, 3>, swizzle = none, l2promo = none, oob = zero, interleave = none>
gpu.launch blocks(%b0, %b1, %b2) in (%g0 = %i, %g1 = %i, %g2 = %i)
          threads(%t0, %t1, %t2) in (%s0 = %i, %s1 = %i, %s2 = %i) {
  nvgpu.tma.prefetch.descriptor %map : !nvgpu.tensormap.descriptor<tensor = memref<4x4xf32, 3>, swizzle = none, l2promo = none, oob = zero, interleave = none>
  gpu.terminator
}
