// ----- REGION
%t = gpu.thread_id x %p = arith.remui %t, %c2 : index
%x = arith.index_cast %t : index to i32
%old = memref.generic_atomic_rmw %1[%p] : memref<2xi32> {
^bb0(%now: i32):
  %twice = arith.addi %now, %now : i32
  %new = arith.addi %twice, %x : i32
  memref.atomic_yield %new : i32
}
memref.store %old, %0[%t] : memref<6xi32>
// ----- COPY
%s = memref.subview %0[0, 1] [2, 3] [2, 2]
  : memref<4x6xf32> to memref<2x3xf32, strided<[12, 2], offset: 1>>
%t = memref.transpose %s (i, j) -> (j, i)
  : memref<2x3xf32, strided<[12, 2], offset: 1>> to memref<3x2xf32, strided<[2, 12], offset: 1>>
memref.copy %t, %1 : memref<3x2xf32, strided<[2, 12], offset: 1>> to memref<3x2xf32>
// ----- SWAPPED
%t = gpu.thread_id x
%bound = arith.addi %t, %c1 : index
%m:2 = scf.for %i = %c0 to %bound step %c1 iter_args(%a = %0, %b = %1)
    -> (memref<4xf32>, memref<4xf32>) {
  scf.yield %b, %a : memref<4xf32>, memref<4xf32>
}
%x = memref.load %m#0[%t] : memref<4xf32>
memref.store %x, %2[%t] : memref<4xf32>
// ----- SOME_LANES
%t = gpu.thread_id x %p = arith.cmpi ult, %t, %c4 : index
scf.if %p {
  %x = memref.load %0[%t] : memref<4xf32>
  %y = arith.addf %x, %x : f32
  memref.store %y, %0[%t] : memref<4xf32>
}
