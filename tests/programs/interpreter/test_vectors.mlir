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
