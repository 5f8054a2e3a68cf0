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
// ----- strided_subview
%v = memref.subview %0[%c1, %c2] [%c3, %c2] [%c2, %c3] : memref<6x8xf32> to memref<?x?xf32, strided<[?, ?], offset: ?>>
// ----- subview_of_a_row
%v = memref.subview %0[2, 1] [1, 5] [1, 1]
  : memref<6x8xf32> to memref<5xf32, strided<[1], offset: 17>>
// ----- subview_of_a_subview
%s = memref.subview %0[1, 2] [4, 4] [1, 1]
  : memref<6x8xf32> to memref<4x4xf32, strided<[8, 1], offset: 10>>
%v = memref.subview %s[1, 0] [2, 3] [1, 1] : memref<4x4xf32, strided<[8, 1], offset: 10>>
  to memref<2x3xf32, strided<[8, 1], offset: 18>>
// ----- reinterpret_cast
%v = memref.reinterpret_cast %0 to offset: [5], sizes: [2, 4], strides: [8, 2]
  : memref<6x8xf32> to memref<2x4xf32, strided<[8, 2], offset: 5>>
// ----- transpose
%v = memref.transpose %0 (i, j) -> (j, i) : memref<6x8xf32> to memref<8x6xf32, strided<[1, 8]>>
// ----- collapse_shape
%v = memref.collapse_shape %0 [[0, 1]] : memref<6x8xf32> into memref<48xf32>
// ----- expand_shape
%v = memref.expand_shape %0 [[0], [1, 2]] output_shape [6, 2, 4]
  : memref<6x8xf32> into memref<6x2x4xf32>
// ----- collapse_of_a_column
%w = memref.subview %0[0, 0] [6, 1] [1, 1]
  : memref<6x8xf32> to memref<6x1xf32, strided<[8, 1]>>
%v = memref.collapse_shape %w [[0, 1]]
  : memref<6x1xf32, strided<[8, 1]>> into memref<6xf32, strided<[8]>>
// ----- strided_metadata
%b, %o, %s:2, %t:2 = memref.extract_strided_metadata %0
  : memref<6x8xf32> -> memref<f32>, index, index, index, index, index
%p = arith.addi %o, %c3 : index
%v = memref.reinterpret_cast %b to offset: [%p], sizes: [2, %s#1], strides: [%t#0, %t#1]
  : memref<f32> to memref<2x?xf32, strided<[?, ?], offset: ?>>
// ----- cast_dim_and_rank
%u = memref.cast %0 : memref<6x8xf32> to memref<?x?xf32>
%d = memref.dim %u, %c1 : memref<?x?xf32>
%r = memref.rank %u : memref<?x?xf32>
%v = memref.subview %u[%r, 0] [1, %d] [1, 1]
  : memref<?x?xf32> to memref<?xf32, strided<[1], offset: ?>>
