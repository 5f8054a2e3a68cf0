// ----- ADD
%x = memref.load %a[%g] : KIND
%y = memref.load %b[%g] : KIND
%z = PLUS %x, %y : TYPE
memref.store %z, %c[%g] : KIND
// ----- BY_HAND
%da = gpu.alloc () : KIND
%db = gpu.alloc () : KIND
%dc = gpu.alloc () : KIND
gpu.memcpy %da, %a : KIND, KIND
gpu.memcpy %db, %b : KIND, KIND
gpu.launch_func @kernels::@kernel blocks in (%c2, %c1, %c1) threads in (%c64, %c1, %c1)
  args(%da : KIND, %db : KIND, %dc : KIND)
%c = memref.alloc() : KIND
gpu.memcpy %c, %dc : KIND, KIND
gpu.dealloc %da : KIND
gpu.dealloc %db : KIND
gpu.dealloc %dc : KIND
return %c : KIND
// ----- MIXED
%da = gpu.alloc () : KIND
gpu.memcpy %da, %a : KIND, KIND
gpu.launch_func @kernels::@kernel blocks in (%c2, %c1, %c1) threads in (%c64, %c1, %c1)
  args(%da : KIND, %b : KIND, %c : KIND)
gpu.dealloc %da : KIND
return
// ----- MINUI
%x = memref.load %a[%g] : KIND
%s = gpu.all_reduce minui %x uniform {} : (TYPE) -> (TYPE)
memref.store %s, %c[%g] : KIND
// ----- SUBGROUP
%x = memref.load %a[%g] : KIND
%s = gpu.subgroup_reduce add %x uniform : (TYPE) -> (TYPE)
memref.store %s, %c[%g] : KIND
// ----- IN_LOOP
%x = memref.load %a[%g] : KIND
%s = scf.for %k = %c0 to %c2 step %c1 iter_args(%y = %x) -> (TYPE) {
  %r = gpu.all_reduce add %x uniform {} : (TYPE) -> (TYPE)
  %z = PLUS %y, %r : TYPE
  scf.yield %z : TYPE
}
memref.store %s, %c[%g] : KIND
// ----- IN_BRANCH
%x = memref.load %a[%g] : KIND
%is = arith.cmpi eq, %block, %c1 : index
%s = scf.if %is -> (TYPE) {
  %r = gpu.all_reduce add %x uniform {} : (TYPE) -> (TYPE)
  scf.yield %r : TYPE
} else {
  scf.yield %x : TYPE
}
memref.store %s, %c[%g] : KIND
// ----- REGION
%x = memref.load %a[%g] : KIND
%s = gpu.all_reduce %x uniform {
^bb(%l: TYPE, %r: TYPE):
  %z = PLUS %l, %r : TYPE
  gpu.yield %z : TYPE
} : (TYPE) -> (TYPE)
memref.store %s, %c[%g] : KIND
// ----- CHAINS
%x = memref.alloc() : KIND
%y = memref.alloc() : KIND
%c = memref.alloc() : KIND
gpu.launch_func @kernels::@kernel blocks in (%c2, %c1, %c1) threads in (%c64, %c1, %c1)
  args(%a : KIND, %b : KIND, %x : KIND)
gpu.launch_func @kernels::@kernel blocks in (%c2, %c1, %c1) threads in (%c64, %c1, %c1)
  args(%b : KIND, %b : KIND, %y : KIND)
gpu.launch_func @kernels::@kernel blocks in (%c2, %c1, %c1) threads in (%c64, %c1, %c1)
  args(%x : KIND, %y : KIND, %c : KIND)
memref.dealloc %x : KIND
memref.dealloc %y : KIND
return %c : KIND
// ----- LOOP
%c = memref.alloc() : KIND
gpu.launch_func @kernels::@kernel blocks in (%c2, %c1, %c1) threads in (%c64, %c1, %c1)
  args(%a : KIND, %b : KIND, %c : KIND)
scf.for %k = %c0 to %c4 step %c1 {
  gpu.launch_func @kernels::@kernel blocks in (%c2, %c1, %c1) threads in (%c64, %c1, %c1)
    args(%c : KIND, %b : KIND, %c : KIND)
}
return %c : KIND
// ----- TOKENS
%x = gpu.alloc host_shared () : KIND
%y = gpu.alloc host_shared () : KIND
%c = gpu.alloc host_shared () : KIND
%t0 = gpu.wait async
%t1 = gpu.wait async
%t2 = gpu.launch_func async [%t0] @kernels::@kernel blocks in (%c2, %c1, %c1) threads in (%c64, %c1, %c1)
  args(%a : KIND, %b : KIND, %x : KIND)
%t3 = gpu.launch_func async [%t1] @kernels::@kernel blocks in (%c2, %c1, %c1) threads in (%c64, %c1, %c1)
  args(%b : KIND, %b : KIND, %y : KIND)
%t4 = gpu.wait async [%t2, %t3]
%t5 = gpu.launch_func async [%t4] @kernels::@kernel blocks in (%c2, %c1, %c1) threads in (%c64, %c1, %c1)
  args(%x : KIND, %y : KIND, %c : KIND)
gpu.wait [%t5]
return %c : KIND
// ----- REVERSE
MADE
%x = memref.load %a[%g] : KIND
memref.store %x, %tile[%i] : TILE
gpu.barrier
%j = arith.subi %c63, %i : index
%y = memref.load %tile[%j] : TILE
memref.store %y, %c[%g] : KIND
// ----- PRIVATE
%ownNUMBER = memref.OP() : OWN
scf.for %k = %c0 to %c4 step %c1 {
  memref.store %sNUMBER, %ownNUMBER[%k] : OWN
}
%yNUMBER = memref.load %ownNUMBER[%c1] : OWN
%wNUMBER = memref.load %ownNUMBER[%c2] : OWN
%zNUMBER = PLUS %yNUMBER, %wNUMBER : TYPE
%sNEXT = PLUS %zNUMBER, %x : TYPE
// ----- MEMSET
%v = arith.constant VALUE : TYPE
%d = gpu.alloc () : KIND
gpu.memset %d, %v : KIND, TYPE
%c = memref.alloc() : KIND
gpu.memcpy %c, %d : KIND, KIND
gpu.dealloc %d : KIND
return %c : KIND
// ----- STRIDED
%d = gpu.alloc () : memref<8x16xf32>
gpu.memcpy %d, %a : memref<8x16xf32>, memref<8x16xf32>
%v = memref.subview %d[0, 4] [8, 4] [1, 1]
  : memref<8x16xf32> to memref<8x4xf32, strided<[16, 1], offset: 4>>
%c = memref.alloc() : memref<8x4xf32>
gpu.memcpy %c, %v : memref<8x4xf32>, memref<8x4xf32, strided<[16, 1], offset: 4>>
gpu.dealloc %d : memref<8x16xf32>
return %c : memref<8x4xf32>
// ----- ROWS
%d = gpu.alloc () : memref<8x16xf32>
gpu.memcpy %d, %a : memref<8x16xf32>, memref<8x16xf32>
%v = memref.subview %d[2, 0] [4, 16] [1, 1]
  : memref<8x16xf32> to memref<4x16xf32, strided<[16, 1], offset: 32>>
%c = memref.alloc() : memref<4x16xf32>
gpu.memcpy %c, %v : memref<4x16xf32>, memref<4x16xf32, strided<[16, 1], offset: 32>>
gpu.dealloc %d : memref<8x16xf32>
return %c : memref<4x16xf32>
// ----- FRAGMENT
%c32 = arith.constant 32 : index
gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
           threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
  %x = gpu.subgroup_mma_load_matrix %a[%c0, %c0] {leadDimension = 16 : index}
    : memref<16x16xTYPE> -> !gpu.mma_matrix<16x16xTYPE, "COp">
  %y = gpu.subgroup_mma_load_matrix %b[%c0, %c0] {leadDimension = 16 : index}
    : memref<16x16xTYPE> -> !gpu.mma_matrix<16x16xTYPE, "COp">
  %z = gpu.subgroup_mma_elementwise NAME INPUTS -> !gpu.mma_matrix<16x16xTYPE, "COp">
  gpu.subgroup_mma_store_matrix %z, %a[%c0, %c0] {leadDimension = 16 : index}
    : !gpu.mma_matrix<16x16xTYPE, "COp">, memref<16x16xTYPE>
  gpu.terminator
}
return
// ----- BEGIN
%x = memref.load %a[%g] : KIND
%s0 = PLUS %x, %x : TYPE
