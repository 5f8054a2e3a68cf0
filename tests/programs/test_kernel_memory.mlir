// ----- REVERSE
%r = arith.subi %c63, %tx : index
memref.store %v, %s[%tx] : memref<64xf32, SPACE>
gpu.barrier
%w = memref.load %s[%r] : memref<64xf32, SPACE>
memref.store %w, %y[%bx, %tx] : memref<2x64xf32>
// ----- VIEWS
%block = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
%at = arith.constant 256 : index
%first = memref.view %block[%c0][] : memref<?xi8, #gpu.address_space<workgroup>> to memref<64xf32, #gpu.address_space<workgroup>>
%s = memref.view %block[%at][] : memref<?xi8, #gpu.address_space<workgroup>> to memref<64xf32, #gpu.address_space<workgroup>>
memref.store %v, %first[%tx] : memref<64xf32, #gpu.address_space<workgroup>>
%r = arith.subi %c63, %tx : index
memref.store %v, %s[%tx] : memref<64xf32, #gpu.address_space<workgroup>>
gpu.barrier
%w = memref.load %s[%r] : memref<64xf32, #gpu.address_space<workgroup>>
memref.store %w, %y[%bx, %tx] : memref<2x64xf32>
// ----- SUM
%kept = memref.load %mine[%tx] : memref<64xf32, 3>
%sum = arith.addf %kept, %w : f32
memref.store %sum, %y[%bx, %tx] : memref<2x64xf32>
// ----- BESIDE_ATTRIBUTIONS
%s = memref.alloc() : memref<64xf32, 3> %r = arith.subi %c63, %tx : index
memref.store %v, %s[%tx] : memref<64xf32, 3>
gpu.barrier
%w = memref.load %s[%r] : memref<64xf32, 3>
memref.store %w, %y[%bx, %tx] : memref<2x64xf32>
memref.store %v, %w0[%tx] : memref<64xf32, 3> memref.store %v, %p0[%c0] : memref<4xf32, 5>
%a = memref.load %w0[%tx] : memref<64xf32, 3> %b = memref.load %p0[%c0] : memref<4xf32, 5>
%h0 = memref.load %h[%c0] : memref<4xf32> %ab = arith.addf %a, %b : f32
%abh = arith.addf %ab, %h0 : f32 %all = arith.addf %abh, %w : f32 memref.store %all, %y[%bx, %tx] : memref<2x64xf32>
// ----- LOOPS_AND_BRANCHES
%r = arith.subi %c63, %tx : index
scf.for %i = %c0 to %c4 step %c1 {
  %s = memref.alloc() : memref<64xf32, 3>
  memref.store %v, %s[%tx] : memref<64xf32, 3>
  gpu.barrier
  %w = memref.load %s[%r] : memref<64xf32, 3>
  %is_last = arith.cmpi eq, %i, %c3 : index
  scf.if %is_last {
    %t = memref.alloc() : memref<64xf32, 3>
    memref.store %w, %t[%tx] : memref<64xf32, 3>
    gpu.barrier
    %u = memref.load %t[%r] : memref<64xf32, 3>
    %sum = arith.addf %w, %u : f32
    memref.store %sum, %y[%bx, %tx] : memref<2x64xf32>
  }
  gpu.barrier
}
// ----- TWO_BUFFERS
%r = arith.subi %c63, %tx : index
%zero = arith.constant 0.0 : f32
%all = scf.for %i = %c0 to %c3 step %c1 iter_args(%sum = %zero) -> (f32) {
  %s = memref.alloc() : memref<64xf32, 3> %t = memref.alloc() : memref<64xf32, 3>
  memref.store %v, %s[%tx] : memref<64xf32, 3>
  gpu.barrier
  memref.store %sum, %t[%tx] : memref<64xf32, 3>
  gpu.barrier
  %a = memref.load %s[%r] : memref<64xf32, 3> %b = memref.load %t[%tx] : memref<64xf32, 3>
  gpu.barrier
  memref.dealloc %s : memref<64xf32, 3> memref.dealloc %t : memref<64xf32, 3>
  %next = arith.addf %a, %b : f32
  scf.yield %next : f32
}
memref.store %all, %y[%bx, %tx] : memref<2x64xf32>
// ----- RACE
%s = memref.alloc() : memref<64xf32, 3>
memref.store %v, %s[%tx] : memref<64xf32, 3>
%r = arith.subi %c63, %tx : index
%w = memref.load %s[%r] : memref<64xf32, 3>
memref.store %w, %y[%bx, %tx] : memref<2x64xf32>
// ----- OUT_OF_BOUNDS
%far = arith.addi %tx, %c64 : index
%w = memref.load %x[%c1, %far] : memref<2x64xf32>
memref.store %w, %y[%bx, %tx] : memref<2x64xf32>
// ----- TOKENS
func.func @main(%x: memref<2x64xi8>, %y: memref<2x64xi8>, %k: i8) {
  %t0 = gpu.wait async
  %d, %t1 = gpu.alloc async [%t0] () : memref<2x64xi8>
  %t2 = gpu.memcpy async [%t1] %d, %x : memref<2x64xi8>, memref<2x64xi8>
  %t3 = gpu.memset async [%t2] %d, %k : memref<2x64xi8>, i8
  %t4 = gpu.memcpy async [%t3] %y, %d : memref<2x64xi8>, memref<2x64xi8>
  %t5 = gpu.dealloc async [%t4] %d : memref<2x64xi8>
  gpu.wait [%t5]
  return
}
// ----- OWN_IN_A_LOOP
%p = memref.KIND() : OWN %q = memref.KIND() : OWN
%k = arith.remui %tx, %c4 : index
scf.for %i = %c0 to %c4 step %c1 {
  %t = memref.KIND() : OWN
  memref.store %v, %t[%k] : OWN
  %z = memref.load %t[%k] : OWN
  %n = arith.index_cast %i : index to i32 %f = arith.sitofp %n : i32 to f32
  %zf = arith.mulf %z, %f : f32
  memref.store %zf, %p[%i] : OWN memref.store %z, %q[%i] : OWN
  gpu.barrier
}
%a = memref.load %p[%k] : OWN %b = memref.load %q[%k] : OWN
%w = arith.addf %a, %b : f32 STORED
// ----- COPYING
func.func @main(%x: ARRAY, %y: ARRAY MORE) {
  %zero = arith.constant 0.0 : f32
  %d = gpu.alloc () : ARRAY
  LINES
  gpu.dealloc %d : ARRAY
  return
}
