// ----- REDUCTION
func.func @main(%x: tensor<5x2xf32>) -> tensor<5xf32> {
  %c = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<5xf32>
  %f = linalg.fill ins(%c : f32) outs(%e : tensor<5xf32>) -> tensor<5xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<5x2xf32>) outs(%f : tensor<5xf32>) {
  ^bb0(%in: f32, %out: f32):
    %m = arith.maximumf %in, %out : f32
    linalg.yield %m : f32
  } -> tensor<5xf32>
  return %r : tensor<5xf32>
}
// ----- HIDDEN
#whole = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @main(%x: tensor<5x2xf32>) -> tensor<5x2xf32> {
  %least = arith.constant 0xFF800000 : f32
  %one = arith.constant 1.0 : f32
  %true = arith.constant true
  %e = tensor.empty() : tensor<5xi1>
  %f = linalg.fill ins(%true : i1) outs(%e : tensor<5xi1>) -> tensor<5xi1>
  %h = linalg.generic {indexing_maps = [#whole, #row], iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<5x2xf32>) outs(%f : tensor<5xi1>) {
  ^bb0(%in: f32, %out: i1):
    %c = arith.cmpf oeq, %in, %least : f32
    %a = arith.andi %c, %out : i1
    linalg.yield %a : i1
  } -> tensor<5xi1>
  %t = tensor.empty() : tensor<5x2xf32>
  %r = linalg.generic {indexing_maps = [#whole, #row, #whole],
      iterator_types = ["parallel", "parallel"]}
    ins(%x, %h : tensor<5x2xf32>, tensor<5xi1>)
    outs(%t : tensor<5x2xf32>) {
  ^bb0(%in: f32, %all: i1, %out: f32):
    %s = arith.select %all, %one, %in : f32
    linalg.yield %s : f32
  } -> tensor<5x2xf32>
  return %r : tensor<5x2xf32>
}
// ----- CHOOSING
func.func @main(%m: tensor<2xi1>, %x: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %c = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x2xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>,
      affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
    ins(%m, %x : tensor<2xi1>, tensor<4x2xf32>) outs(%e : tensor<4x2xf32>) {
  ^bb0(%k: i1, %in: f32, %out: f32):
    %s = arith.select %k, %in, %c : f32
    linalg.yield %s : f32
  } -> tensor<4x2xf32>
  return %r : tensor<4x2xf32>
}
// ----- COUNTS
#whole = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#alone = affine_map<(i) -> (i)>
func.func @main(%x: tensor<5x2xi64>) -> tensor<5xf32> {
  %three = arith.constant 3 : i64
  %none = arith.constant 0 : i64
  %true = arith.constant true
  %e = tensor.empty() : tensor<5x2xi1>
  %is = linalg.generic {indexing_maps = [#whole, #whole], iterator_types = ["parallel", "parallel"]}
    ins(%x : tensor<5x2xi64>) outs(%e : tensor<5x2xi1>) {
  ^bb0(%in: i64, %out: i1):
    %c = arith.cmpi eq, %in, %three : i64
    linalg.yield %c : i1
  } -> tensor<5x2xi1>
  %n = tensor.empty() : tensor<5xi64>
  %f = linalg.fill ins(%none : i64) outs(%n : tensor<5xi64>) -> tensor<5xi64>
  %set = linalg.generic {indexing_maps = [#whole, #row], iterator_types = ["parallel", "reduction"]}
    ins(%is : tensor<5x2xi1>) outs(%f : tensor<5xi64>) {
  ^bb0(%in: i1, %out: i64):
    %w = arith.extui %in : i1 to i64
    %s = arith.addi %w, %out : i64
    linalg.yield %s : i64
  } -> tensor<5xi64>
  %clear = linalg.generic {indexing_maps = [#whole, #row], iterator_types = ["parallel", "reduction"]}
    ins(%is : tensor<5x2xi1>) outs(%f : tensor<5xi64>) {
  ^bb0(%in: i1, %out: i64):
    %not = arith.xori %in, %true : i1
    %w = arith.extui %not : i1 to i64
    %s = arith.addi %w, %out : i64
    linalg.yield %s : i64
  } -> tensor<5xi64>
  %t = tensor.empty() : tensor<5xf32>
  %r = linalg.generic {indexing_maps = [#alone, #alone, #alone], iterator_types = ["parallel"]}
    ins(%set, %clear : tensor<5xi64>, tensor<5xi64>) outs(%t : tensor<5xf32>) {
  ^bb0(%in: i64, %other: i64, %out: f32):
    %s = arith.addi %in, %other : i64
    %w = arith.sitofp %s : i64 to f32
    linalg.yield %w : f32
  } -> tensor<5xf32>
  return %r : tensor<5xf32>
}
// ----- TRUTHS
func.func @f(%v: vector<16xi1>, %m: vector<16xi1>, %i: index) -> vector<16xi1> {
  %p = arith.constant false
  %b = memref.alloca() : memref<6xi1>
  vector.transfer_write %v, %b[%i], %m : vector<16xi1>, memref<6xi1>
  %r = vector.transfer_read %b[%i], %p, %m : memref<6xi1>, vector<16xi1>
  return %r : vector<16xi1>
}
// ----- VIEWED
func.func @f(%v: vector<16xi1>, %m: vector<16xi1>, %i: index) -> vector<16xi1> {
  %p = arith.constant false
  %b = memref.alloca() : memref<2x3xi1>
  %c = memref.collapse_shape %b [[0, 1]] : memref<2x3xi1> into memref<6xi1>
  vector.transfer_write %v, %c[%i], %m : vector<16xi1>, memref<6xi1>
  %r = vector.transfer_read %c[%i], %p, %m : memref<6xi1>, vector<16xi1>
  return %r : vector<16xi1>
}
// ----- MASKED
func.func @sums(%mask: vector<4xi1>, %v: vector<4xf32>, %start: f32, %w: vector<4xi32>) -> (f32, i32) {
  %sum = vector.mask %mask { vector.reduction <add>, %v, %start : vector<4xf32> into f32 } : vector<4xi1> -> f32
  %count = vector.mask %mask { vector.reduction <add>, %w : vector<4xi32> into i32 } : vector<4xi1> -> i32
  return %sum, %count : f32, i32
}
