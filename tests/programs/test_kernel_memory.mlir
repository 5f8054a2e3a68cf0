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
