// ----- GATHER
func.func @main(%i: tensor<3xi64>, %t: tensor<9x4xf32>) -> tensor<3x4xf32> {
  %e = tensor.empty() : tensor<3x4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a)>, affine_map<(a, b) -> (a, b)>],
      iterator_types = ["parallel", "parallel"]} ins(%i : tensor<3xi64>) outs(%e : tensor<3x4xf32>) {
  ^bb0(%n: i64, %o: f32):
    %row = arith.index_cast %n : i64 to index
    %column = linalg.index 1 : index
    %x = tensor.extract %t[%row, %column] : tensor<9x4xf32>
    linalg.yield %x : f32
  } -> tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}
// ----- BUCKETS
#same = affine_map<(a, b) -> (a, b)>
func.func @main(%x: tensor<3x5xi64>, %y: tensor<3x5xi64>) -> tensor<3x5xi32> {
  %e = tensor.empty() : tensor<3x5xi64>
  %d = linalg.generic {indexing_maps = [#same, #same, #same], iterator_types = ["parallel", "parallel"]}
      ins(%x, %y : tensor<3x5xi64>, tensor<3x5xi64>) outs(%e : tensor<3x5xi64>) {
  ^bb0(%a: i64, %b: i64, %o: i64):
    %n = arith.subi %a, %b : i64
    linalg.yield %n : i64
  } -> tensor<3x5xi64>
  %f = tensor.empty() : tensor<3x5xi1>
  %c = linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel"]}
      ins(%d : tensor<3x5xi64>) outs(%f : tensor<3x5xi1>) {
  ^bb0(%a: i64, %o: i1):
    %zero = arith.constant 0 : i64
    %n = arith.cmpi slt, %a, %zero : i64
    linalg.yield %n : i1
  } -> tensor<3x5xi1>
  %g = tensor.empty() : tensor<3x5xi32>
  %r = linalg.generic {indexing_maps = [#same, #same, #same], iterator_types = ["parallel", "parallel"]}
      ins(%c, %d : tensor<3x5xi1>, tensor<3x5xi64>) outs(%g : tensor<3x5xi32>) {
  ^bb0(%is: i1, %a: i64, %o: i32):
    %none = arith.constant -1 : i32
    %n = arith.trunci %a : i64 to i32
    %s = arith.select %is, %none, %n : i32
    linalg.yield %s : i32
  } -> tensor<3x5xi32>
  return %r : tensor<3x5xi32>
}
// ----- MAXIMUM
func.func @main(%x: tensor<3x5xf32>) -> tensor<3xf32> {
  %least = arith.constant 0xFF800000 : f32
  %none = arith.constant 0 : i64
  %e = tensor.empty() : tensor<3xf32>
  %f = linalg.fill ins(%least : f32) outs(%e : tensor<3xf32>) -> tensor<3xf32>
  %g = tensor.empty() : tensor<3xi64>
  %h = linalg.fill ins(%none : i64) outs(%g : tensor<3xi64>) -> tensor<3xi64>
  %r:2 = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a)>,
      affine_map<(a, b) -> (a)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<3x5xf32>) outs(%f, %h : tensor<3xf32>, tensor<3xi64>) {
  ^bb0(%in: f32, %best: f32, %at: i64):
    %i = linalg.index 1 : index
    %n = arith.index_cast %i : index to i64
    %m = arith.maximumf %in, %best : f32
    %c = arith.cmpf ogt, %in, %best : f32
    %w = arith.select %c, %n, %at : i64
    linalg.yield %m, %w : f32, i64
  } -> (tensor<3xf32>, tensor<3xi64>)
  return %r#0 : tensor<3xf32>
}
// ----- INIT
func.func @init(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>, %c: tensor<2xf32>)
    -> (tensor<3x2xf32>, tensor<2xf32>, tensor<3x2xf32>, tensor<3x2xf32>) {
  %e = tensor.empty() : tensor<3x2xf32>
  %0 = linalg.transpose ins(%a : tensor<2x3xf32>) outs(%e : tensor<3x2xf32>) permutation = [1, 0]
  %1 = linalg.transpose ins(%b : tensor<2x3xf32>) outs(%e : tensor<3x2xf32>) permutation = [1, 0]
  %2 = math.absf %1 : tensor<3x2xf32>
  return %0, %c, %1, %2 : tensor<3x2xf32>, tensor<2xf32>, tensor<3x2xf32>, tensor<3x2xf32>
}
// ----- attention
// Two heads of a batch of one; queries, keys and values are parts of one linear layer.
#m0 = affine_map<(d0, d1) -> (d0, d1)>
#m1 = affine_map<(d0, d1) -> (d1)>
#m2 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#m3 = affine_map<(d0, d1, d2) -> (d0, d1)>
func.func @main(%arg0: tensor<5x8xf32>) -> (tensor<5x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %least = arith.constant 0xFF800000 : f32
  %v1 = arith.constant dense<NUMBERS> : tensor<24x8xf32>
  %v3 = tensor.empty() : tensor<8x24xf32>
  %v2 = linalg.transpose ins(%v1 : tensor<24x8xf32>) outs(%v3 : tensor<8x24xf32>) permutation = [1, 0]
  %v5 = tensor.empty() : tensor<5x24xf32>
  %v6 = linalg.fill ins(%zero : f32) outs(%v5 : tensor<5x24xf32>) -> tensor<5x24xf32>
  %v4 = linalg.matmul ins(%arg0, %v2 : tensor<5x8xf32>, tensor<8x24xf32>) outs(%v6 : tensor<5x24xf32>) -> tensor<5x24xf32>
  %v7 = arith.constant dense<NUMBERS> : tensor<24xf32>
  %v8 = tensor.empty() : tensor<5x24xf32>
  %v9 = linalg.generic {indexing_maps = [#m0, #m1, #m0], iterator_types = ["parallel", "parallel"]}
    ins(%v4, %v7 : tensor<5x24xf32>, tensor<24xf32>) outs(%v8 : tensor<5x24xf32>) {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %q = arith.addf %x, %y : f32
    linalg.yield %q : f32
  } -> tensor<5x24xf32>
  %v10 = tensor.extract_slice %v9[0, 0] [5, 8] [1, 1] : tensor<5x24xf32> to tensor<5x8xf32>
  %v11 = tensor.extract_slice %v9[0, 8] [5, 8] [1, 1] : tensor<5x24xf32> to tensor<5x8xf32>
  %v12 = tensor.extract_slice %v9[0, 16] [5, 8] [1, 1] : tensor<5x24xf32> to tensor<5x8xf32>
  %v13 = tensor.expand_shape %v10 [[0], [1, 2]] output_shape [5, 2, 4] : tensor<5x8xf32> into tensor<5x2x4xf32>
  %v14 = tensor.expand_shape %v11 [[0], [1, 2]] output_shape [5, 2, 4] : tensor<5x8xf32> into tensor<5x2x4xf32>
  %v15 = tensor.expand_shape %v12 [[0], [1, 2]] output_shape [5, 2, 4] : tensor<5x8xf32> into tensor<5x2x4xf32>
  %v17 = tensor.empty() : tensor<2x5x4xf32>
  %v16 = linalg.transpose ins(%v13 : tensor<5x2x4xf32>) outs(%v17 : tensor<2x5x4xf32>) permutation = [1, 0, 2]
  %v19 = tensor.empty() : tensor<2x5x4xf32>
  %v18 = linalg.transpose ins(%v15 : tensor<5x2x4xf32>) outs(%v19 : tensor<2x5x4xf32>) permutation = [1, 0, 2]
  %v21 = tensor.empty() : tensor<2x4x5xf32>
  %v20 = linalg.transpose ins(%v14 : tensor<5x2x4xf32>) outs(%v21 : tensor<2x4x5xf32>) permutation = [1, 2, 0]
  %v23 = tensor.empty() : tensor<2x5x5xf32>
  %v24 = linalg.fill ins(%zero : f32) outs(%v23 : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %v22 = linalg.batch_matmul ins(%v16, %v20 : tensor<2x5x4xf32>, tensor<2x4x5xf32>) outs(%v24 : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %v25 = tensor.empty() : tensor<2x5xf32>
  %v26 = linalg.fill ins(%least : f32) outs(%v25 : tensor<2x5xf32>) -> tensor<2x5xf32>
  %v27 = linalg.generic {indexing_maps = [#m2, #m3], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%v22 : tensor<2x5x5xf32>) outs(%v26 : tensor<2x5xf32>) {
  ^bb0(%x: f32, %out: f32):
    %q = arith.maximumf %x, %out : f32
    linalg.yield %q : f32
  } -> tensor<2x5xf32>
  %v28 = tensor.empty() : tensor<2x5x5xf32>
  %v29 = linalg.generic {indexing_maps = [#m2, #m3, #m2], iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%v22, %v27 : tensor<2x5x5xf32>, tensor<2x5xf32>) outs(%v28 : tensor<2x5x5xf32>) {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %q = arith.subf %x, %y : f32
    linalg.yield %q : f32
  } -> tensor<2x5x5xf32>
  %v30 = tensor.empty() : tensor<2x5x5xf32>
  %v31 = linalg.generic {indexing_maps = [#m2, #m2], iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%v29 : tensor<2x5x5xf32>) outs(%v30 : tensor<2x5x5xf32>) {
  ^bb0(%x: f32, %out: f32):
    %q = math.exp %x : f32
    linalg.yield %q : f32
  } -> tensor<2x5x5xf32>
  %v32 = tensor.empty() : tensor<2x5xf32>
  %v33 = linalg.fill ins(%zero : f32) outs(%v32 : tensor<2x5xf32>) -> tensor<2x5xf32>
  %v34 = linalg.generic {indexing_maps = [#m2, #m3], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%v31 : tensor<2x5x5xf32>) outs(%v33 : tensor<2x5xf32>) {
  ^bb0(%x: f32, %out: f32):
    %q = arith.addf %x, %out : f32
    linalg.yield %q : f32
  } -> tensor<2x5xf32>
  %v35 = tensor.empty() : tensor<2x5x5xf32>
  %v36 = linalg.generic {indexing_maps = [#m2, #m3, #m2], iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%v31, %v34 : tensor<2x5x5xf32>, tensor<2x5xf32>) outs(%v35 : tensor<2x5x5xf32>) {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %q = arith.divf %x, %y : f32
    linalg.yield %q : f32
  } -> tensor<2x5x5xf32>
  %v38 = tensor.empty() : tensor<2x5x4xf32>
  %v39 = linalg.fill ins(%zero : f32) outs(%v38 : tensor<2x5x4xf32>) -> tensor<2x5x4xf32>
  %v37 = linalg.batch_matmul ins(%v36, %v18 : tensor<2x5x5xf32>, tensor<2x5x4xf32>) outs(%v39 : tensor<2x5x4xf32>) -> tensor<2x5x4xf32>
  %v41 = tensor.empty() : tensor<5x2x4xf32>
  %v40 = linalg.transpose ins(%v37 : tensor<2x5x4xf32>) outs(%v41 : tensor<5x2x4xf32>) permutation = [1, 0, 2]
  %v42 = tensor.collapse_shape %v40 [[0], [1, 2]] : tensor<5x2x4xf32> into tensor<5x8xf32>
  %v43 = arith.constant dense<NUMBERS> : tensor<8x8xf32>
  %v45 = tensor.empty() : tensor<8x8xf32>
  %v44 = linalg.transpose ins(%v43 : tensor<8x8xf32>) outs(%v45 : tensor<8x8xf32>) permutation = [1, 0]
  %v47 = tensor.empty() : tensor<5x8xf32>
  %v48 = linalg.fill ins(%zero : f32) outs(%v47 : tensor<5x8xf32>) -> tensor<5x8xf32>
  %v46 = linalg.matmul ins(%v42, %v44 : tensor<5x8xf32>, tensor<8x8xf32>) outs(%v48 : tensor<5x8xf32>) -> tensor<5x8xf32>
  %v49 = arith.constant dense<NUMBERS> : tensor<8xf32>
  %v50 = tensor.empty() : tensor<5x8xf32>
  %v51 = linalg.generic {indexing_maps = [#m0, #m1, #m0], iterator_types = ["parallel", "parallel"]}
    ins(%v46, %v49 : tensor<5x8xf32>, tensor<8xf32>) outs(%v50 : tensor<5x8xf32>) {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %q = arith.addf %x, %y : f32
    linalg.yield %q : f32
  } -> tensor<5x8xf32>
  return %v51 : tensor<5x8xf32>
}
// ----- convolution
// Two convolutions with padding between them, a bias in the first one's initial values.
#m0 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
func.func @main(%arg0: tensor<1x3x6x6xf32>) -> (tensor<1x3x6x6xf32>) {
  %zero = arith.constant 0.0 : f32
  %v1 = tensor.empty() : tensor<1x3x6x6xf32>
  %v2 = linalg.fill ins(%zero : f32) outs(%v1 : tensor<1x3x6x6xf32>) -> tensor<1x3x6x6xf32>
  %v3 = arith.constant dense<NUMBERS> : tensor<3xf32>
  %v4 = tensor.empty() : tensor<1x3x6x6xf32>
  %v5 = linalg.broadcast ins(%v3 : tensor<3xf32>) outs(%v4 : tensor<1x3x6x6xf32>) dimensions = [0, 2, 3]
  %v6 = tensor.pad %arg0 low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i0: index, %i1: index, %i2: index, %i3: index):
    tensor.yield %zero : f32
  } : tensor<1x3x6x6xf32> to tensor<1x3x8x8xf32>
  %v7 = arith.constant dense<NUMBERS> : tensor<3x3x3x3xf32>
  %v8 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%v6, %v7 : tensor<1x3x8x8xf32>, tensor<3x3x3x3xf32>) outs(%v5 : tensor<1x3x6x6xf32>) -> tensor<1x3x6x6xf32>
  %v9 = tensor.empty() : tensor<1x3x6x6xf32>
  %v10 = linalg.generic {indexing_maps = [#m0, #m0], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%v8 : tensor<1x3x6x6xf32>) outs(%v9 : tensor<1x3x6x6xf32>) {
  ^bb0(%x: f32, %out: f32):
    %p = arith.cmpf ugt, %x, %zero : f32
    %q = arith.select %p, %x, %zero : f32
    linalg.yield %q : f32
  } -> tensor<1x3x6x6xf32>
  %v11 = tensor.pad %v10 low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i0: index, %i1: index, %i2: index, %i3: index):
    tensor.yield %zero : f32
  } : tensor<1x3x6x6xf32> to tensor<1x3x8x8xf32>
  %v12 = arith.constant dense<NUMBERS> : tensor<3x3x3x3xf32>
  %v13 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%v11, %v12 : tensor<1x3x8x8xf32>, tensor<3x3x3x3xf32>) outs(%v2 : tensor<1x3x6x6xf32>) -> tensor<1x3x6x6xf32>
  %v14 = tensor.empty() : tensor<1x3x6x6xf32>
  %v15 = linalg.generic {indexing_maps = [#m0, #m0], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%v13 : tensor<1x3x6x6xf32>) outs(%v14 : tensor<1x3x6x6xf32>) {
  ^bb0(%x: f32, %out: f32):
    %p = arith.cmpf ugt, %x, %zero : f32
    %q = arith.select %p, %x, %zero : f32
    linalg.yield %q : f32
  } -> tensor<1x3x6x6xf32>
  %v16 = tensor.empty() : tensor<1x3x6x6xf32>
  %v17 = linalg.generic {indexing_maps = [#m0, #m0, #m0], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%v15, %arg0 : tensor<1x3x6x6xf32>, tensor<1x3x6x6xf32>) outs(%v16 : tensor<1x3x6x6xf32>) {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %q = arith.addf %x, %y : f32
    linalg.yield %q : f32
  } -> tensor<1x3x6x6xf32>
  return %v17 : tensor<1x3x6x6xf32>
}
// ----- reshaped_after_a_matmul
#m0 = affine_map<(d0, d1) -> (d0, d1)>
#m1 = affine_map<(d0, d1) -> (d1)>
#m2 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
func.func @main(%arg0: tensor<6x4xf32>) -> (tensor<2x3x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %v1 = arith.constant dense<NUMBERS> : tensor<8x4xf32>
  %v3 = tensor.empty() : tensor<4x8xf32>
  %v2 = linalg.transpose ins(%v1 : tensor<8x4xf32>) outs(%v3 : tensor<4x8xf32>) permutation = [1, 0]
  %v5 = tensor.empty() : tensor<6x8xf32>
  %v6 = linalg.fill ins(%zero : f32) outs(%v5 : tensor<6x8xf32>) -> tensor<6x8xf32>
  %v4 = linalg.matmul ins(%arg0, %v2 : tensor<6x4xf32>, tensor<4x8xf32>) outs(%v6 : tensor<6x8xf32>) -> tensor<6x8xf32>
  %v7 = arith.constant dense<NUMBERS> : tensor<8xf32>
  %v8 = tensor.empty() : tensor<6x8xf32>
  %v9 = linalg.generic {indexing_maps = [#m0, #m1, #m0], iterator_types = ["parallel", "parallel"]}
    ins(%v4, %v7 : tensor<6x8xf32>, tensor<8xf32>) outs(%v8 : tensor<6x8xf32>) {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %q = arith.addf %x, %y : f32
    linalg.yield %q : f32
  } -> tensor<6x8xf32>
  %v10 = tensor.expand_shape %v9 [[0, 1], [2]] output_shape [2, 3, 8] : tensor<6x8xf32> into tensor<2x3x8xf32>
  %v11 = tensor.empty() : tensor<2x3x8xf32>
  %v12 = linalg.generic {indexing_maps = [#m2, #m2], iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%v10 : tensor<2x3x8xf32>) outs(%v11 : tensor<2x3x8xf32>) {
  ^bb0(%x: f32, %out: f32):
    %q = math.tanh %x : f32
    linalg.yield %q : f32
  } -> tensor<2x3x8xf32>
  return %v12 : tensor<2x3x8xf32>
}
// ----- one_b_for_a_batch
func.func @main(%arg0: tensor<2x3x4xf32>) -> (tensor<2x3x6xf32>) {
  %zero = arith.constant 0.0 : f32
  %v1 = arith.constant dense<NUMBERS> : tensor<4x6xf32>
  %v2 = tensor.empty() : tensor<2x4x6xf32>
  %v3 = linalg.broadcast ins(%v1 : tensor<4x6xf32>) outs(%v2 : tensor<2x4x6xf32>) dimensions = [0]
  %v5 = tensor.empty() : tensor<2x3x6xf32>
  %v6 = linalg.fill ins(%zero : f32) outs(%v5 : tensor<2x3x6xf32>) -> tensor<2x3x6xf32>
  %v4 = linalg.batch_matmul ins(%arg0, %v3 : tensor<2x3x4xf32>, tensor<2x4x6xf32>) outs(%v6 : tensor<2x3x6xf32>) -> tensor<2x3x6xf32>
  return %v4 : tensor<2x3x6xf32>
}
// ----- transposed_b
// A product whose B lies as n x k, as torch has its weights.
#m0 = affine_map<(m, n, k) -> (m, k)>
#m1 = affine_map<(m, n, k) -> (n, k)>
#m2 = affine_map<(m, n, k) -> (m, n)>
#m3 = affine_map<(d0, d1) -> (d0, d1)>
func.func @main(%arg0: tensor<4x6xf32>) -> (tensor<4x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %v1 = arith.constant dense<NUMBERS> : tensor<8x6xf32>
  %v2 = tensor.empty() : tensor<4x8xf32>
  %v3 = linalg.fill ins(%zero : f32) outs(%v2 : tensor<4x8xf32>) -> tensor<4x8xf32>
  %v4 = linalg.matmul indexing_maps = [#m0, #m1, #m2] ins(%arg0, %v1 : tensor<4x6xf32>, tensor<8x6xf32>) outs(%v3 : tensor<4x8xf32>) -> tensor<4x8xf32>
  %v5 = tensor.empty() : tensor<4x8xf32>
  %v6 = linalg.generic {indexing_maps = [#m3, #m3], iterator_types = ["parallel", "parallel"]}
    ins(%v4 : tensor<4x8xf32>) outs(%v5 : tensor<4x8xf32>) {
  ^bb0(%x: f32, %out: f32):
    %p = arith.cmpf ugt, %x, %zero : f32
    %q = arith.select %p, %x, %zero : f32
    linalg.yield %q : f32
  } -> tensor<4x8xf32>
  return %v6 : tensor<4x8xf32>
}
// ----- broadcast_b
// A product of a B without a batch.
#m0 = affine_map<(b, m, n, k) -> (b, m, k)>
#m1 = affine_map<(b, m, n, k) -> (k, n)>
#m2 = affine_map<(b, m, n, k) -> (b, m, n)>
func.func @main(%arg0: tensor<2x4x6xf32>) -> (tensor<2x4x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %v1 = arith.constant dense<NUMBERS> : tensor<6x8xf32>
  %v2 = tensor.empty() : tensor<2x4x8xf32>
  %v3 = linalg.fill ins(%zero : f32) outs(%v2 : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %v4 = linalg.batch_matmul indexing_maps = [#m0, #m1, #m2] ins(%arg0, %v1 : tensor<2x4x6xf32>, tensor<6x8xf32>) outs(%v3 : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  return %v4 : tensor<2x4x8xf32>
}
// ----- overwritten
// A part is inserted into a value that is read again afterwards, and whose parts are, too.
#m0 = affine_map<(d0, d1) -> (d0, d1)>
func.func @main(%arg0: tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>, tensor<8x6xf32>, tensor<4x6xf32>) {
  %zero = arith.constant 0.0 : f32
  %v1 = tensor.empty() : tensor<4x6xf32>
  %v2 = linalg.generic {indexing_maps = [#m0, #m0], iterator_types = ["parallel", "parallel"]}
    ins(%arg0 : tensor<4x6xf32>) outs(%v1 : tensor<4x6xf32>) {
  ^bb0(%x: f32, %out: f32):
    %p = arith.cmpf ugt, %x, %zero : f32
    %q = arith.select %p, %x, %zero : f32
    linalg.yield %q : f32
  } -> tensor<4x6xf32>
  %v3 = tensor.empty() : tensor<4x6xf32>
  %v4 = linalg.generic {indexing_maps = [#m0, #m0], iterator_types = ["parallel", "parallel"]}
    ins(%arg0 : tensor<4x6xf32>) outs(%v3 : tensor<4x6xf32>) {
  ^bb0(%x: f32, %out: f32):
    %q = math.tanh %x : f32
    linalg.yield %q : f32
  } -> tensor<4x6xf32>
  %v5 = tensor.extract_slice %v4[0, 0] [2, 3] [1, 1] : tensor<4x6xf32> to tensor<2x3xf32>
  %v6 = tensor.insert_slice %v5 into %v2[1, 1] [2, 3] [1, 1] : tensor<2x3xf32> into tensor<4x6xf32>
  %v7 = tensor.empty() : tensor<4x6xf32>
  %v8 = linalg.generic {indexing_maps = [#m0, #m0], iterator_types = ["parallel", "parallel"]}
    ins(%arg0 : tensor<4x6xf32>) outs(%v7 : tensor<4x6xf32>) {
  ^bb0(%x: f32, %out: f32):
    %q = arith.mulf %x, %x : f32
    linalg.yield %q : f32
  } -> tensor<4x6xf32>
  %v9 = tensor.concat dim(0) %v8, %arg0 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
  %v10 = tensor.insert_slice %v5 into %v9[2, 2] [2, 3] [1, 1] : tensor<2x3xf32> into tensor<8x6xf32>
  %v11 = tensor.empty() : tensor<4x6xf32>
  %v12 = linalg.generic {indexing_maps = [#m0, #m0], iterator_types = ["parallel", "parallel"]}
    ins(%v2 : tensor<4x6xf32>) outs(%v11 : tensor<4x6xf32>) {
  ^bb0(%x: f32, %out: f32):
    %q = math.exp %x : f32
    linalg.yield %q : f32
  } -> tensor<4x6xf32>
  %v13 = tensor.empty() : tensor<4x6xf32>
  %v14 = linalg.generic {indexing_maps = [#m0, #m0], iterator_types = ["parallel", "parallel"]}
    ins(%v8 : tensor<4x6xf32>) outs(%v13 : tensor<4x6xf32>) {
  ^bb0(%x: f32, %out: f32):
    %q = math.exp %x : f32
    linalg.yield %q : f32
  } -> tensor<4x6xf32>
  return %v6, %v12, %v10, %v14 : tensor<4x6xf32>, tensor<4x6xf32>, tensor<8x6xf32>, tensor<4x6xf32>
}
// ----- layer_norm
#m0 = affine_map<(d0, d1) -> (d0, d1)>
#m1 = affine_map<(d0, d1) -> (d0)>
#m2 = affine_map<(d0) -> (d0)>
#m3 = affine_map<(d0, d1) -> (d1)>
func.func @main(%arg0: tensor<5x8xf32>) -> (tensor<5x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %v1 = tensor.empty() : tensor<5xf32>
  %v2 = linalg.fill ins(%zero : f32) outs(%v1 : tensor<5xf32>) -> tensor<5xf32>
  %v3 = linalg.generic {indexing_maps = [#m0, #m1], iterator_types = ["parallel", "reduction"]}
    ins(%arg0 : tensor<5x8xf32>) outs(%v2 : tensor<5xf32>) {
  ^bb0(%x: f32, %out: f32):
    %q = arith.addf %x, %out : f32
    linalg.yield %q : f32
  } -> tensor<5xf32>
  %v4 = tensor.empty() : tensor<5x8xf32>
  %v5 = linalg.generic {indexing_maps = [#m0, #m1, #m0], iterator_types = ["parallel", "parallel"]}
    ins(%arg0, %v3 : tensor<5x8xf32>, tensor<5xf32>) outs(%v4 : tensor<5x8xf32>) {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %q = arith.subf %x, %y : f32
    linalg.yield %q : f32
  } -> tensor<5x8xf32>
  %v6 = tensor.empty() : tensor<5x8xf32>
  %v7 = linalg.generic {indexing_maps = [#m0, #m0], iterator_types = ["parallel", "parallel"]}
    ins(%v5 : tensor<5x8xf32>) outs(%v6 : tensor<5x8xf32>) {
  ^bb0(%x: f32, %out: f32):
    %q = arith.mulf %x, %x : f32
    linalg.yield %q : f32
  } -> tensor<5x8xf32>
  %v8 = tensor.empty() : tensor<5xf32>
  %v9 = linalg.fill ins(%zero : f32) outs(%v8 : tensor<5xf32>) -> tensor<5xf32>
  %v10 = linalg.generic {indexing_maps = [#m0, #m1], iterator_types = ["parallel", "reduction"]}
    ins(%v7 : tensor<5x8xf32>) outs(%v9 : tensor<5xf32>) {
  ^bb0(%x: f32, %out: f32):
    %q = arith.addf %x, %out : f32
    linalg.yield %q : f32
  } -> tensor<5xf32>
  %v11 = tensor.empty() : tensor<5xf32>
  %v12 = linalg.generic {indexing_maps = [#m2, #m2], iterator_types = ["parallel"]}
    ins(%v10 : tensor<5xf32>) outs(%v11 : tensor<5xf32>) {
  ^bb0(%x: f32, %out: f32):
    %q = math.exp %x : f32
    linalg.yield %q : f32
  } -> tensor<5xf32>
  %v13 = tensor.empty() : tensor<5x8xf32>
  %v14 = linalg.generic {indexing_maps = [#m0, #m1, #m0], iterator_types = ["parallel", "parallel"]}
    ins(%v5, %v12 : tensor<5x8xf32>, tensor<5xf32>) outs(%v13 : tensor<5x8xf32>) {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %q = arith.divf %x, %y : f32
    linalg.yield %q : f32
  } -> tensor<5x8xf32>
  %v15 = arith.constant dense<NUMBERS> : tensor<8xf32>
  %v16 = tensor.empty() : tensor<5x8xf32>
  %v17 = linalg.generic {indexing_maps = [#m0, #m3, #m0], iterator_types = ["parallel", "parallel"]}
    ins(%v14, %v15 : tensor<5x8xf32>, tensor<8xf32>) outs(%v16 : tensor<5x8xf32>) {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %q = arith.mulf %x, %y : f32
    linalg.yield %q : f32
  } -> tensor<5x8xf32>
  return %v17 : tensor<5x8xf32>
}
// ----- moved
// Nothing is computed: an argument returned, a transpose, a concatenation, a constant.
func.func @main(%arg0: tensor<3x4xf32>) -> (tensor<3x4xf32>, tensor<4x3xf32>, tensor<6x4xf32>, tensor<2x2xf32>) {
  %least = arith.constant 0xFF800000 : f32
  %v2 = tensor.empty() : tensor<3x4xf32>
  %v1 = linalg.transpose ins(%arg0 : tensor<3x4xf32>) outs(%v2 : tensor<3x4xf32>) permutation = [0, 1]
  %v3 = tensor.concat dim(0) %arg0, %v1 : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<6x4xf32>
  %v5 = tensor.empty() : tensor<4x3xf32>
  %v4 = linalg.transpose ins(%arg0 : tensor<3x4xf32>) outs(%v5 : tensor<4x3xf32>) permutation = [1, 0]
  %v6 = tensor.empty() : tensor<2x2xf32>
  %v7 = linalg.fill ins(%least : f32) outs(%v6 : tensor<2x2xf32>) -> tensor<2x2xf32>
  return %arg0, %v4, %v3, %v7 : tensor<3x4xf32>, tensor<4x3xf32>, tensor<6x4xf32>, tensor<2x2xf32>
}
// ----- REFUSED
// refused: argument 0: tensor<\?xf32> has a dynamic size
func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> { return %x : tensor<?xf32> }

// refused: argument 0: memref<4xf32> is not a tensor
func.func @main(%x: memref<4xf32>) { return }

// refused: argument 0: f32 is not a tensor
func.func @main(%x: f32) -> f32 { return %x : f32 }

// refused: returns nothing
func.func @main(%x: tensor<4xf32>) { return }

// refused: elements of an unsupported type
func.func @main(%x: tensor<complex<f32>>) -> tensor<complex<f32>> {
  return %x : tensor<complex<f32>>
}

// refused: has no elements
func.func @main(%x: tensor<0xf32>) -> tensor<0xf32> { return %x : tensor<0xf32> }

// refused: control flow: scf.for
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = arith.constant 0 : index
  %b = arith.constant 9 : index
  %s = arith.constant 1 : index
  %r = scf.for %i = %a to %b step %s iter_args(%y = %x) -> tensor<4xf32> {
    %z = arith.addf %y, %y : tensor<4xf32>
    scf.yield %z : tensor<4xf32>
}
  return %r : tensor<4xf32>
}

// refused: control flow: the function has several blocks
func.func @main(%x: tensor<4xf32>, %c: tensor<i1>) -> tensor<4xf32> {
  %b = tensor.extract %c[] : tensor<i1>
  cf.cond_br %b, ^one, ^other
  ^one:
  return %x : tensor<4xf32>
  ^other:
  %y = arith.addf %x, %x : tensor<4xf32>
  return %y : tensor<4xf32>
}

// refused: calls that cannot be inlined
func.func private @other(tensor<4xf32>) -> tensor<4xf32>
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = func.call @other(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
// ----- STARTED
func.func @main(%x: tensor<2x3x10xf32>, %w: tensor<4x3x3xf32>, %bias: tensor<2x4x8xf32>)
    -> tensor<2x4x8xf32> {
  %r = linalg.conv_1d_ncw_fcw {dilations = dense<1> : vector<1xi64>, strides = dense<1> : vector<1xi64>}
    ins(%x, %w : tensor<2x3x10xf32>, tensor<4x3x3xf32>) outs(%bias : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  return %r : tensor<2x4x8xf32>
}
// ----- FILLED
// Fills by a number that is read from an argument: returned, in the weights' sum, before a product; and a result
// of any contents.
func.func @main(%x: tensor<4x8xf32>, %y: tensor<8x4xf32>)
    -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x4xf32>, tensor<4x8xf32>) {
  %c = arith.constant 0 : index
  %w = arith.constant dense<[[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0],
    [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]]> : tensor<4x8xf32>
  %v = tensor.extract %x[%c, %c] : tensor<4x8xf32>
  %e = tensor.empty() : tensor<4x8xf32>
  %f = linalg.fill ins(%v : f32) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  %s = linalg.add ins(%w, %f : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  %d = tensor.empty() : tensor<4x4xf32>
  %g = linalg.fill ins(%v : f32) outs(%d : tensor<4x4xf32>) -> tensor<4x4xf32>
  %p = linalg.matmul ins(%x, %y : tensor<4x8xf32>, tensor<8x4xf32>) outs(%g : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %f, %s, %p, %e : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x4xf32>, tensor<4x8xf32>
}
// ----- WITHOUT_DATA
func.func @main() -> tensor<9xf32> {
  %w = arith.constant dense_resource<w> : tensor<9xf32>
  return %w : tensor<9xf32>
}
// ----- JOINED_WEIGHTS
func.func @main(%x: tensor<4x4xf32>) -> tensor<4x10xf32> {
  %zero = arith.constant 0.0 : f32
  %a = arith.constant dense<NUMBERS> : tensor<4x3xf32>
  %b = arith.constant dense<NUMBERS> : tensor<4x7xf32>
  %w = tensor.concat dim(1) %a, %b : (tensor<4x3xf32>, tensor<4x7xf32>) -> tensor<4x10xf32>
  %e = tensor.empty() : tensor<4x10xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4x10xf32>) -> tensor<4x10xf32>
  %y = linalg.matmul ins(%x, %w : tensor<4x4xf32>, tensor<4x10xf32>) outs(%z : tensor<4x10xf32>) -> tensor<4x10xf32>
  return %y : tensor<4x10xf32>
}
