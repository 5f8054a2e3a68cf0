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
// ----- LAST_WINS
%t = gpu.thread_id x
%x = arith.index_cast %t : index to i64
%p = arith.cmpi ult, %t, %c5 : index
scf.if %p { memref.store %x, %0[%c1] : memref<2xi64> }
// ----- ATOMIC
%t = gpu.thread_id x
%x = memref.load %0[%t] : memref<12xi32>
%q = memref.load %1[%t] : memref<12xi32>
%p = arith.index_cast %q : i32 to index
%old = memref.atomic_rmw NAME %x, %2[%p] : (i32, memref<3xi32>) -> i32
memref.store %old, %3[%t] : memref<12xi32>
// ----- SHARED
%t = gpu.thread_id x
%b = gpu.block_id x
%g = gpu.global_id x
%h = arith.index_cast %g : index to i32
%x = arith.sitofp %h : i32 to f32
memref.store %x, %m[%t] : memref<8xf32, 3>
gpu.barrier
%seven = arith.constant 7 : index
%o = arith.subi %seven, %t : index
%y = memref.load %m[%o] : memref<8xf32, 3>
memref.store %y, %0[%b, %t] : memref<3x8xf32>
// ----- PRIVATE
%t = gpu.thread_id x
%p = arith.remui %t, %c4 : index
%h = arith.index_cast %t : index to i32
%x = arith.sitofp %h : i32 to f32
memref.store %x, %m[%p] : memref<SIZExf32>
%y = memref.load %m[%p] : memref<SIZExf32>
memref.store %y, %0[%t] : memref<8xf32>
// ----- TABLE
%m = memref.get_global @table : memref<2x2xf32>
memref.copy %m, %0 : memref<2x2xf32> to memref<2x2xf32>
%fresh = memref.alloca() : memref<4xf32>
%x = memref.load %fresh[%c2] : memref<4xf32>
memref.store %x, %0[%c1, %c1] : memref<2x2xf32>
// ----- FAULTS
// fault: found index 8 of dimension 0, allowed 0 to 5,
%x = memref.load %0[%c8, %c0] : memref<6x8xf32>

// fault: found index -1 of dimension 1, allowed 0 to 7,
%m = arith.constant -1 : index
memref.store %z, %0[%c0, %m] : memref<6x8xf32>

// fault: found an address outside of its buffer
%v = memref.reinterpret_cast %0 to offset: [40], sizes: [9], strides: [1]
  : memref<6x8xf32> to memref<9xf32, strided<[1], offset: 40>>
%x = memref.load %v[%c8] : memref<9xf32, strided<[1], offset: 40>>

// fault: found an address that is not a multiple of 4
%m = memref.alloca() : memref<16xi8>
%v = memref.view %m[%c2][] : memref<16xi8> to memref<2xf32>
memref.store %z, %v[%c0] : memref<2xf32>

// fault: found 400000000 bytes in each of 32, allowed 4294967296 in all
%big = arith.constant 100000000 : index
%m = memref.alloca(%big) : memref<?xf32>

// fault: an index outside of dimension 1, said to be in bounds
%v = vector.transfer_read %0[%c0, %c6], %z {in_bounds = [true]} : memref<6x8xf32>, vector<4xf32>
vector.store %v, %0[%c0, %c0] : memref<6x8xf32>, vector<4xf32>

// fault: an address outside of its buffer
%v = vector.load %0[%c5, %c6] : memref<6x8xf32>, vector<4xf32>
// ----- SHARED_MEMORY
%m = memref.alloc() : memref<8xf32, 3>

%n = memref.alloc() : memref<8xf32, #gpu.address_space<workgroup>>
%m = memref.memory_space_cast %n : memref<8xf32, #gpu.address_space<workgroup>> to memref<8xf32, 3>

%m = memref.get_global @shared : memref<8xf32, 3>
// ----- PRIVATE_MEMORY
// size: 4
%m = memref.alloca() : memref<4xf32>

// size: 4
%n = memref.alloca() : memref<4xf32, 5>
%m = memref.memory_space_cast %n : memref<4xf32, 5> to memref<4xf32>

// size: ?
%m = memref.alloc(%c4) : memref<?xf32>
// ----- WRITES
%v = vector.load %0[%c0, %c0] : memref<2x3xf32>, vector<2x3xf32>
vector.transfer_write %v, %1[%c3, %c4] : vector<2x3xf32>, memref<4x6xf32>
%m = vector.create_mask %c2, %c1 : vector<2x3xi1>
vector.transfer_write %v, %1[%c0, %c0], %m {in_bounds = [true, true]}
  : vector<2x3xf32>, memref<4x6xf32>
// ----- MASKED
%m = vector.constant_mask [2] : vector<4xi1>
%p = arith.constant dense<9.0> : vector<4xf32>
%where = arith.constant dense<[3, 1, 100, -100]> : vector<4xindex>
%a = vector.maskedload %0[%c6], %m, %p : memref<8xf32>, vector<4xi1>, vector<4xf32> into vector<4xf32>
vector.store %a, %1[%c0, %c0] : memref<4x4xf32>, vector<4xf32>
%b = vector.gather %0[%c1] [%where], %m, %p
  : memref<8xf32>, vector<4xindex>, vector<4xi1>, vector<4xf32> into vector<4xf32>
vector.store %b, %1[%c1, %c0] : memref<4x4xf32>, vector<4xf32>
vector.maskedstore %1[%c2, %c2], %m, %a : memref<4x4xf32>, vector<4xi1>, vector<4xf32>
vector.scatter %1[%c3, %c0] [%where], %m, %b
  : memref<4x4xf32>, vector<4xindex>, vector<4xi1>, vector<4xf32>
// ----- ROWS
%m = memref.alloca() : memref<2xvector<3xf32>>
%v = arith.constant dense<[1.0, 2.0, 3.0]> : vector<3xf32>
%w = arith.addf %v, %v : vector<3xf32>
memref.store %v, %m[%c0] : memref<2xvector<3xf32>>
memref.store %w, %m[%c1] : memref<2xvector<3xf32>>
%a = memref.load %m[%c0] : memref<2xvector<3xf32>>
%b = memref.load %m[%c1] : memref<2xvector<3xf32>>
vector.store %a, %0[%c0, %c0] : memref<2x3xf32>, vector<3xf32>
vector.store %b, %0[%c1, %c0] : memref<2x3xf32>, vector<3xf32>
%size = memref.dim %m, %c0 : memref<2xvector<3xf32>>
// ----- broadcast_of_a_row
%r = vector.broadcast %a : vector<3xf32> to vector<2x3xf32>
// ----- broadcast_of_a_column
%r = vector.broadcast %a : vector<2x1xf32> to vector<2x3xf32>
// ----- broadcast_of_a_number
%r = vector.broadcast %a : f32 to vector<2xf32>
// ----- extract_a_row
%r = vector.extract %a[1] : vector<3xf32> from vector<2x3xf32>
// ----- extract_a_number
%r = vector.extract %a[1, 2] : f32 from vector<2x3xf32>
// ----- extract_at_an_index
%p = arith.remui %t, %c2 : index %r = vector.extract %a[%p, 2] : f32 from vector<2x3xf32>
// ----- insert_a_row
%r = vector.insert %a, %b [0] : vector<3xf32> into vector<2x3xf32>
// ----- insert_at_an_index
%p = arith.remui %t, %c3 : index
%r = vector.insert %a, %b [%p] : f32 into vector<3xf32>
// ----- extract_strided_slice
%r = vector.extract_strided_slice %a {offsets = [1, 0], sizes = [1, 2], strides = [1, 1]}
  : vector<2x3xf32> to vector<1x2xf32>
// ----- insert_strided_slice
%r = vector.insert_strided_slice %a, %b {offsets = [1, 1], strides = [1]}
  : vector<2xf32> into vector<2x3xf32>
// ----- shape_cast
%r = vector.shape_cast %a : vector<2x3xf32> to vector<3x2xf32>
// ----- transpose_of_rows
%r = vector.transpose %a, [1, 0] : vector<2x3xf32> to vector<3x2xf32>
// ----- bitcast
%r = vector.bitcast %a : vector<3xf32> to vector<6xi16>
// ----- shuffle
%r = vector.shuffle %a, %b [0, 5, 2, 3] : vector<3xf32>, vector<3xf32>
// ----- interleave
%r = vector.interleave %a, %b : vector<3xf32> -> vector<6xf32>
// ----- deinterleave
%x, %r = vector.deinterleave %a : vector<6xf32> -> vector<3xf32>
// ----- elements
%e:3 = vector.to_elements %a : vector<3xf32>
%r = vector.from_elements %e#2, %e#0, %e#1, %e#2 : vector<2x2xf32>
// ----- create_mask
%m = vector.create_mask %c1, %t : vector<2x3xi1>
%r = arith.select %m, %a, %b : vector<2x3xi1>, vector<2x3xf32>
// ----- constant_mask
%m = vector.constant_mask [1, 2] : vector<2x3xi1>
%r = arith.select %m, %a, %b : vector<2x3xi1>, vector<2x3xf32>
// ----- step
%s = vector.step : vector<3xindex> %r = arith.index_cast %s : vector<3xindex> to vector<3xi64>
// ----- fma
%r = vector.fma %a, %b, %a : vector<2x3xf32>
// ----- sum
%r = vector.reduction <add>, %a : vector<3xf32> into f32
// ----- product_with_a_start
%r = vector.reduction <mul>, %a, %b : vector<3xf32> into f32
// ----- minimum
%r = vector.reduction <minnumf>, %a : vector<3xf32> into f32
// ----- sums_of_columns
%r = vector.multi_reduction <add>, %a, %b [0] : vector<2x3xf32> to vector<3xf32>
// ----- maximum_of_all
%r = vector.multi_reduction <maximumf>, %a, %b [0, 1] : vector<2x3xf32> to f32
// ----- outerproduct
%r = vector.outerproduct %a, %b : vector<2xf32>, vector<3xf32>
// ----- outerproduct_with_a_start
%r = vector.outerproduct %a, %b, %c : vector<2xf32>, vector<3xf32>
// ----- outerproduct_with_a_number
%r = vector.outerproduct %a, %b, %c : vector<3xf32>, f32
// ----- CONTRACT
%r = vector.contract {
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>],
    iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %a, %b, %c
  : vector<2x4xNARROW>, vector<3x4xNARROW> into vector<2x3xWIDE>
// ----- TRANSFER_MASK
%m = vector.constant_mask [1, 2] : vector<2x3xi1>
%v = vector.transfer_read %0[%c0, %c0], %z, %m {in_bounds = [true, true], permutation_map = affine_map<(i, j) -> (j, i)>}
  : memref<4x6xf32>, vector<3x2xf32>
vector.store %v, %1[%c0, %c0] : memref<3x2xf32>, vector<3x2xf32>
