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
// ----- transpose
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
