// ----- LINEAR
#all = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>
func.func @linear(%x: tensor<?x8xf32>, %w: tensor<8x12xf32>, %b: tensor<12xf32>) -> tensor<?x12xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x8xf32>
  %empty = tensor.empty(%n) : tensor<?x12xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x12xf32>) -> tensor<?x12xf32>
  %product = linalg.matmul ins(%x, %w : tensor<?x8xf32>, tensor<8x12xf32>)
    outs(%zeros : tensor<?x12xf32>) -> tensor<?x12xf32>
  %y = linalg.generic {indexing_maps = [#all, #column, #all], iterator_types = ["parallel", "parallel"]}
    ins(%product, %b : tensor<?x12xf32>, tensor<12xf32>) outs(%empty : tensor<?x12xf32>) {
  ^bb0(%p: f32, %add: f32, %old: f32):
    %sum = arith.addf %p, %add : f32
    %relu = arith.maximumf %sum, %zero : f32
    linalg.yield %relu : f32
  } -> tensor<?x12xf32>
  return %y : tensor<?x12xf32>
}
// ----- MLP
func.func @mlp(%x: tensor<?x8xf32>, %up: tensor<8x16xf32>, %down: tensor<16x4xf32>) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x8xf32>
  %wide = tensor.empty(%n) : tensor<?x16xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%wide : tensor<?x16xf32>) -> tensor<?x16xf32>
  %h = linalg.matmul ins(%x, %up : tensor<?x8xf32>, tensor<8x16xf32>)
    outs(%zeros : tensor<?x16xf32>) -> tensor<?x16xf32>
  %t = math.tanh %h : tensor<?x16xf32>
  %narrow = tensor.empty(%n) : tensor<?x4xf32>
  %start = linalg.fill ins(%zero : f32) outs(%narrow : tensor<?x4xf32>) -> tensor<?x4xf32>
  %y = linalg.matmul ins(%t, %down : tensor<?x16xf32>, tensor<16x4xf32>)
    outs(%start : tensor<?x4xf32>) -> tensor<?x4xf32>
  return %y : tensor<?x4xf32>
}
// ----- ATTENTION
#row = affine_map<(b, i, j) -> (b, i)>
#all = affine_map<(b, i, j) -> (b, i, j)>
#queries = affine_map<(b, i, j, d) -> (b, i, d)>
#keys = affine_map<(b, i, j, d) -> (b, j, d)>
#scores = affine_map<(b, i, j, d) -> (b, i, j)>
func.func @attention(%q: tensor<2x?x4xf32>, %k: tensor<2x?x4xf32>, %v: tensor<2x?x4xf32>)
    -> tensor<2x?x4xf32> {
  %c1 = arith.constant 1 : index
  %least = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %q, %c1 : tensor<2x?x4xf32>
  %square = tensor.empty(%n, %n) : tensor<2x?x?xf32>
  %rows = tensor.empty(%n) : tensor<2x?xf32>
  %out = tensor.empty(%n) : tensor<2x?x4xf32>
  %start = linalg.fill ins(%zero : f32) outs(%square : tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  %scores = linalg.generic {indexing_maps = [#queries, #keys, #scores],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
    ins(%q, %k : tensor<2x?x4xf32>, tensor<2x?x4xf32>) outs(%start : tensor<2x?x?xf32>) {
  ^bb0(%x: f32, %y: f32, %old: f32):
    %product = arith.mulf %x, %y : f32
    %new = arith.addf %product, %old : f32
    linalg.yield %new : f32
  } -> tensor<2x?x?xf32>
  %lows = linalg.fill ins(%least : f32) outs(%rows : tensor<2x?xf32>) -> tensor<2x?xf32>
  %max = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%scores : tensor<2x?x?xf32>) outs(%lows : tensor<2x?xf32>) {
  ^bb0(%in: f32, %old: f32):
    %new = arith.maximumf %in, %old : f32
    linalg.yield %new : f32
  } -> tensor<2x?xf32>
  %exp = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%scores, %max : tensor<2x?x?xf32>, tensor<2x?xf32>) outs(%square : tensor<2x?x?xf32>) {
  ^bb0(%in: f32, %top: f32, %old: f32):
    %below = arith.subf %in, %top : f32
    %e = math.exp %below : f32
    linalg.yield %e : f32
  } -> tensor<2x?x?xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%rows : tensor<2x?xf32>) -> tensor<2x?xf32>
  %sum = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%exp : tensor<2x?x?xf32>) outs(%zeros : tensor<2x?xf32>) {
  ^bb0(%in: f32, %old: f32):
    %new = arith.addf %in, %old : f32
    linalg.yield %new : f32
  } -> tensor<2x?xf32>
  %weights = linalg.generic {indexing_maps = [#all, #row, #all],
      iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%exp, %sum : tensor<2x?x?xf32>, tensor<2x?xf32>) outs(%square : tensor<2x?x?xf32>) {
  ^bb0(%in: f32, %total: f32, %old: f32):
    %share = arith.divf %in, %total : f32
    linalg.yield %share : f32
  } -> tensor<2x?x?xf32>
  %first = linalg.fill ins(%zero : f32) outs(%out : tensor<2x?x4xf32>) -> tensor<2x?x4xf32>
  %result = linalg.batch_matmul ins(%weights, %v : tensor<2x?x?xf32>, tensor<2x?x4xf32>)
    outs(%first : tensor<2x?x4xf32>) -> tensor<2x?x4xf32>
  return %result : tensor<2x?x4xf32>
}
// ----- MEAN
func.func @mean(%x: tensor<?x5xf32>) -> tensor<5xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x5xf32>
  %integer = arith.index_cast %n : index to i64
  %count = arith.sitofp %integer : i64 to f32
  %one = arith.constant 1.0 : f32
  %share = arith.divf %one, %count : f32
  %empty = tensor.empty() : tensor<5xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<5xf32>) -> tensor<5xf32>
  %exp = math.exp %x : tensor<?x5xf32>
  %sum = linalg.reduce { arith.addf } ins(%exp : tensor<?x5xf32>) outs(%zeros : tensor<5xf32>) dimensions = [0]
  %mean = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]}
    ins(%sum : tensor<5xf32>) outs(%empty : tensor<5xf32>) {
  ^bb0(%total: f32, %old: f32):
    %y = arith.mulf %total, %share : f32
    linalg.yield %y : f32
  } -> tensor<5xf32>
  return %mean : tensor<5xf32>
}
// ----- PRODUCT_OVER_N
func.func @gram(%x: tensor<?x3xf32>) -> tensor<3x3xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x3xf32>
  %turned = tensor.empty(%n) : tensor<3x?xf32>
  %t = linalg.transpose ins(%x : tensor<?x3xf32>) outs(%turned : tensor<3x?xf32>) permutation = [1, 0]
  %log = math.log %t : tensor<3x?xf32>
  %empty = tensor.empty() : tensor<3x3xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<3x3xf32>) -> tensor<3x3xf32>
  %y = linalg.matmul ins(%log, %x : tensor<3x?xf32>, tensor<?x3xf32>)
    outs(%zeros : tensor<3x3xf32>) -> tensor<3x3xf32>
  return %y : tensor<3x3xf32>
}
// ----- WINDOWS
func.func @windows(%x: tensor<1x?x2xf32>, %w: tensor<3x2x4xf32>) -> tensor<1x?x4xf32> {
  %c1 = arith.constant 1 : index
  %half = arith.constant 0.5 : f32
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c1 : tensor<1x?x2xf32>
  %padded = tensor.pad %x low[0, 1, 0] high[0, 2, 0] {
  ^bb0(%i: index, %j: index, %k: index):
    tensor.yield %half : f32
  } : tensor<1x?x2xf32> to tensor<1x?x2xf32>
  %longer = arith.addi %n, %c1 : index
  %empty = tensor.empty(%longer) : tensor<1x?x4xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x?x4xf32>) -> tensor<1x?x4xf32>
  %y = linalg.conv_1d_nwc_wcf {dilations = dense<1> : tensor<1xi64>, strides = dense<1> : tensor<1xi64>}
    ins(%padded, %w : tensor<1x?x2xf32>, tensor<3x2x4xf32>) outs(%zeros : tensor<1x?x4xf32>) -> tensor<1x?x4xf32>
  return %y : tensor<1x?x4xf32>
}
// ----- TOKENS
#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @tokens(%ids: tensor<?xi64>, %table: tensor<9x6xf32>, %first: tensor<1x6xf32>) -> tensor<?x2x3xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %ids, %c0 : tensor<?xi64>
  %empty = tensor.empty(%n) : tensor<?x6xf32>
  %rows = linalg.generic {indexing_maps = [#row, #all], iterator_types = ["parallel", "parallel"]}
    ins(%ids : tensor<?xi64>) outs(%empty : tensor<?x6xf32>) {
  ^bb0(%id: i64, %old: f32):
    %row = arith.index_cast %id : i64 to index
    %column = linalg.index 1 : index
    %element = tensor.extract %table[%row, %column] : tensor<9x6xf32>
    linalg.yield %element : f32
  } -> tensor<?x6xf32>
  %with = tensor.concat dim(0) %first, %rows : (tensor<1x6xf32>, tensor<?x6xf32>) -> tensor<?x6xf32>
  %c1 = arith.constant 1 : index
  %more = arith.addi %n, %c1 : index
  %heads = tensor.expand_shape %with [[0], [1, 2]] output_shape [%more, 2, 3]
    : tensor<?x6xf32> into tensor<?x2x3xf32>
  return %heads : tensor<?x2x3xf32>
}
// ----- GREATEST
#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @greatest(%x: tensor<3x?xf32>) -> (tensor<3xf32>, tensor<3xi64>) {
  %least = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0 : i64
  %rows = tensor.empty() : tensor<3xf32>
  %numbers = tensor.empty() : tensor<3xi64>
  %lows = linalg.fill ins(%least : f32) outs(%rows : tensor<3xf32>) -> tensor<3xf32>
  %zeros = linalg.fill ins(%zero : i64) outs(%numbers : tensor<3xi64>) -> tensor<3xi64>
  %max:2 = linalg.generic {indexing_maps = [#all, #row, #row], iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<3x?xf32>) outs(%lows, %zeros : tensor<3xf32>, tensor<3xi64>) {
  ^bb0(%in: f32, %old: f32, %at: i64):
    %j = linalg.index 1 : index
    %number = arith.index_cast %j : index to i64
    %is = arith.cmpf ogt, %in, %old : f32
    %new = arith.select %is, %in, %old : f32
    %place = arith.select %is, %number, %at : i64
    linalg.yield %new, %place : f32, i64
  } -> (tensor<3xf32>, tensor<3xi64>)
  return %max#0, %max#1 : tensor<3xf32>, tensor<3xi64>
}
// ----- VIEWS
func.func @views(%x: tensor<?x4xf32>) -> (tensor<?xf32>, tensor<?x2xf32>, tensor<?x4xf32>) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?x4xf32>
  %flat = tensor.collapse_shape %x [[0, 1]] : tensor<?x4xf32> into tensor<?xf32>
  %half = tensor.extract_slice %x[0, 1] [%n, 2] [1, 2] : tensor<?x4xf32> to tensor<?x2xf32>
  %more = affine.apply affine_map<()[s] -> (s + 1)>()[%n]
  %two = arith.constant dense<2.0> : tensor<1x4xf32>
  %long = tensor.empty(%more) : tensor<?x4xf32>
  %begun = tensor.insert_slice %two into %long[0, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<?x4xf32>
  %whole = tensor.insert_slice %x into %begun[1, 0] [%n, 4] [1, 1] : tensor<?x4xf32> into tensor<?x4xf32>
  return %flat, %half, %whole : tensor<?xf32>, tensor<?x2xf32>, tensor<?x4xf32>
}
// ----- NARROW
func.func @narrow(%x: tensor<?xi8>) -> tensor<?xi8> {
  %c0 = arith.constant 0 : index
  %c5 = arith.constant 5 : index
  %n = tensor.dim %x, %c0 : tensor<?xi8>
  %more = arith.muli %n, %c5 : index
  %number = arith.index_cast %more : index to i8
  %empty = tensor.empty(%n) : tensor<?xi8>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]} ins(%x : tensor<?xi8>) outs(%empty : tensor<?xi8>) {
  ^bb0(%a: i8, %old: i8):
    %sum = arith.addi %a, %number : i8
    linalg.yield %sum : i8
  } -> tensor<?xi8>
  return %y : tensor<?xi8>
}
// ----- RESHAPES
func.func @reshapes(%x: tensor<?x4xf32>) -> (tensor<?x2xf32>, tensor<1x?x2x2xf32>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %n = tensor.dim %x, %c0 : tensor<?x4xf32>
  %double = arith.muli %n, %c2 : index
  %all = arith.muli %n, %c4 : index
  %halves = tensor.from_elements %double, %c2 : tensor<2xindex>
  %squares = tensor.from_elements %c1, %n, %c2, %c2 : tensor<4xindex>
  %flat = tensor.from_elements %all : tensor<1xindex>
  %y = tensor.reshape %x(%halves) : (tensor<?x4xf32>, tensor<2xindex>) -> tensor<?x2xf32>
  %z = tensor.reshape %x(%squares) : (tensor<?x4xf32>, tensor<4xindex>) -> tensor<1x?x2x2xf32>
  %exp = math.exp %z : tensor<1x?x2x2xf32>
  %f = tensor.reshape %exp(%flat) : (tensor<1x?x2x2xf32>, tensor<1xindex>) -> tensor<?xf32>
  return %y, %z, %f : tensor<?x2xf32>, tensor<1x?x2x2xf32>, tensor<?xf32>
}
// ----- LAST_ROWS
func.func @last_rows(%x: tensor<?x4xf32>) -> (tensor<4xf32>, tensor<1x2xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?x4xf32>
  %last = arith.subi %n, %c1 : index
  %exp = math.exp %x : tensor<?x4xf32>
  %row = tensor.extract_slice %exp[%last, 0] [1, 4] [1, 1] : tensor<?x4xf32> to tensor<4xf32>
  %part = tensor.extract_slice %exp[%last, 1] [1, 2] [1, 2] : tensor<?x4xf32> to tensor<1x2xf32>
  return %row, %part : tensor<4xf32>, tensor<1x2xf32>
}
// ----- PADDED_TO
func.func @padded_to(%x: tensor<?x3xf32>) -> (tensor<80x3xf32>, tensor<?x3xf32>) {
  %c0 = arith.constant 0 : index
  %c80 = arith.constant 80 : index
  %half = arith.constant 0.5 : f32
  %n = tensor.dim %x, %c0 : tensor<?x3xf32>
  %rest = arith.subi %c80, %n : index
  %exp = math.exp %x : tensor<?x3xf32>
  %y = tensor.pad %exp low[0, 0] high[%rest, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %half : f32
  } : tensor<?x3xf32> to tensor<80x3xf32>
  %z = tensor.pad %exp low[1, 0] high[%n, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %half : f32
  } : tensor<?x3xf32> to tensor<?x3xf32>
  return %y, %z : tensor<80x3xf32>, tensor<?x3xf32>
}
// ----- DECIDED
func.func @decided(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<f32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c99 = arith.constant 99 : index
  %n = tensor.dim %x, %c0 : tensor<?x4xf32>
  %m = tensor.dim %y, %c0 : tensor<?x4xf32>
  %fit = arith.cmpi eq, %n, %m : index
  cf.assert %fit, "mismatched size for broadcast"
  %more = arith.muli %n, %c4 : index
  %over = arith.remsi %more, %c4 : index
  %whole = arith.cmpi eq, %over, %c0 : index
  %some = arith.cmpi uge, %n, %c1 : index
  %both = arith.andi %whole, %some : i1
  cf.assert %both, "no rows"
  %below = arith.cmpi slt, %n, %c99 : index
  %length = arith.select %below, %m, %c99 : index
  %bounded = arith.minsi %length, %c99 : index
  %empty = tensor.empty(%bounded) : tensor<?x4xf32>
  %sum = linalg.add ins(%x, %y : tensor<?x4xf32>, tensor<?x4xf32>) outs(%empty : tensor<?x4xf32>) -> tensor<?x4xf32>
  %integer = arith.index_cast %n : index to i64
  %number = arith.sitofp %integer : i64 to f32
  %count = tensor.from_elements %number : tensor<f32>
  return %sum, %count : tensor<?x4xf32>, tensor<f32>
}
// ----- TWICE_AND_ONE
func.func @twice_and_one(%x: tensor<?x3xf32>, %y: tensor<?x3xf32> {tuner.sizes = ["2n+1"]})
    -> (tensor<?x3xf32>, tensor<3xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x3xf32>
  %m = tensor.dim %y, %c0 : tensor<?x3xf32>
  %double = arith.addi %n, %n : index
  %more = arith.addi %double, %c1 : index
  %fit = arith.cmpi eq, %m, %more : index
  cf.assert %fit, "of other sizes"
  %exp = math.exp %y : tensor<?x3xf32>
  %empty = tensor.empty() : tensor<3xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<3xf32>) -> tensor<3xf32>
  %sum = linalg.reduce { arith.addf } ins(%exp : tensor<?x3xf32>) outs(%zeros : tensor<3xf32>) dimensions = [0]
  return %exp, %sum : tensor<?x3xf32>, tensor<3xf32>
}
// ----- PADDED_VIEW
func.func @padded_view(%x: tensor<?x3xf32>) -> tensor<1x?x3xf32> {
  %c0 = arith.constant 0 : index
  %half = arith.constant 0.5 : f32
  %n = tensor.dim %x, %c0 : tensor<?x3xf32>
  %exp = math.exp %x : tensor<?x3xf32>
  %view = tensor.expand_shape %exp [[0, 1], [2]] output_shape [1, %n, 3] : tensor<?x3xf32> into tensor<1x?x3xf32>
  %y = tensor.pad %view low[0, 1, 0] high[0, 2, 0] {
  ^bb0(%i: index, %j: index, %k: index):
    tensor.yield %half : f32
  } : tensor<1x?x3xf32> to tensor<1x?x3xf32>
  return %y : tensor<1x?x3xf32>
}
// ----- CHECKED_INDEX
#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @checked_index(%ids: tensor<?xi64>, %table: tensor<9x4xf32>) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %c9 = arith.constant 9 : index
  %none = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %nine = arith.constant 9 : i64
  %n = tensor.dim %ids, %c0 : tensor<?xi64>
  %ids_to = tensor.empty(%n) : tensor<?xi64>
  %below = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]} ins(%ids : tensor<?xi64>) outs(%ids_to : tensor<?xi64>) {
  ^bb0(%id: i64, %old: i64):
    %y = arith.subi %id, %one : i64
    linalg.yield %y : i64
  } -> tensor<?xi64>
  %empty = tensor.empty(%n) : tensor<?x4xf32>
  %rows = linalg.generic {indexing_maps = [#row, #all], iterator_types = ["parallel", "parallel"]}
    ins(%below : tensor<?xi64>) outs(%empty : tensor<?x4xf32>) {
  ^bb0(%id: i64, %old: f32):
    %is_below = arith.cmpi slt, %id, %none : i64
    %more = arith.addi %id, %nine : i64
    %chosen = arith.select %is_below, %more, %id : i64
    %row = arith.index_cast %chosen : i64 to index
    %is_inside = arith.cmpi slt, %row, %c9 : index
    cf.assert %is_inside, "index must be smaller than dim size"
    %column = linalg.index 1 : index
    %element = tensor.extract %table[%row, %column] : tensor<9x4xf32>
    linalg.yield %element : f32
  } -> tensor<?x4xf32>
  return %rows : tensor<?x4xf32>
}
// ----- CHOSEN
func.func @chosen(%x: tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<?xf32>, tensor<i64>) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %one = arith.constant 1.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x4xf32>
  %is = arith.cmpi ugt, %n, %c2 : index
  %other = math.exp %x : tensor<?x4xf32>
  %r = arith.select %is, %x, %other : tensor<?x4xf32>
  %twice = arith.muli %n, %c2 : index
  %more = arith.addi %twice, %c2 : index
  %half = affine.apply affine_map<()[s] -> ((s + 1) floordiv 2)>()[%more]
  %empty = tensor.empty(%half) : tensor<?xf32>
  %ones = linalg.fill ins(%one : f32) outs(%empty : tensor<?xf32>) -> tensor<?xf32>
  %integer = arith.index_cast %n : index to i64
  %number = tensor.empty() : tensor<i64>
  %count = linalg.fill ins(%integer : i64) outs(%number : tensor<i64>) -> tensor<i64>
  return %r, %ones, %count : tensor<?x4xf32>, tensor<?xf32>, tensor<i64>
}
// ----- ENCODER
#x = affine_map<(b, i, j, d) -> (b, i, d)>
#w = affine_map<(b, i, j, d) -> (d, j)>
#y = affine_map<(b, i, j, d) -> (b, i, j)>
#keys = affine_map<(b, i, j, d) -> (b, j, d)>
#values = affine_map<(b, i, j, d) -> (b, d, j)>
#all = affine_map<(b, i, j) -> (b, i, j)>
#row = affine_map<(b, i, j) -> (b, i)>
#of_batch = affine_map<(b, i, j) -> (b, j)>
func.func @encoder(%x: tensor<?x?x4xf32> {tuner.sizes = ["m", "n"]}, %weight: tensor<4x4xf32>)
    -> (tensor<?x?x4xf32>, tensor<?x4xf32>, tensor<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %least = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x?x4xf32>
  %n = tensor.dim %x, %c1 : tensor<?x?x4xf32>
  %rows = tensor.empty(%m, %n) : tensor<?x?x4xf32>
  %square = tensor.empty(%m, %n, %n) : tensor<?x?x?xf32>
  %numbers = tensor.empty(%m, %n) : tensor<?x?xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%rows : tensor<?x?x4xf32>) -> tensor<?x?x4xf32>
  %q = linalg.generic {indexing_maps = [#x, #w, #y],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
    ins(%x, %weight : tensor<?x?x4xf32>, tensor<4x4xf32>) outs(%zeros : tensor<?x?x4xf32>) {
  ^bb0(%a: f32, %b: f32, %old: f32):
    %product = arith.mulf %a, %b : f32
    %new = arith.addf %product, %old : f32
    linalg.yield %new : f32
  } -> tensor<?x?x4xf32>
  %start = linalg.fill ins(%zero : f32) outs(%square : tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
  %scores = linalg.generic {indexing_maps = [#x, #keys, #y],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
    ins(%q, %x : tensor<?x?x4xf32>, tensor<?x?x4xf32>) outs(%start : tensor<?x?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %old: f32):
    %product = arith.mulf %a, %b : f32
    %new = arith.addf %product, %old : f32
    linalg.yield %new : f32
  } -> tensor<?x?x?xf32>
  %lows = linalg.fill ins(%least : f32) outs(%numbers : tensor<?x?xf32>) -> tensor<?x?xf32>
  %max = linalg.reduce { arith.maximumf } ins(%scores : tensor<?x?x?xf32>) outs(%lows : tensor<?x?xf32>) dimensions = [2]
  %exp = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%scores, %max : tensor<?x?x?xf32>, tensor<?x?xf32>) outs(%square : tensor<?x?x?xf32>) {
  ^bb0(%in: f32, %top: f32, %old: f32):
    %below = arith.subf %in, %top : f32
    %e = math.exp %below : f32
    linalg.yield %e : f32
  } -> tensor<?x?x?xf32>
  %none = linalg.fill ins(%zero : f32) outs(%numbers : tensor<?x?xf32>) -> tensor<?x?xf32>
  %sum = linalg.reduce { arith.addf } ins(%exp : tensor<?x?x?xf32>) outs(%none : tensor<?x?xf32>) dimensions = [2]
  %weights = linalg.generic {indexing_maps = [#all, #row, #all],
      iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%exp, %sum : tensor<?x?x?xf32>, tensor<?x?xf32>) outs(%square : tensor<?x?x?xf32>) {
  ^bb0(%in: f32, %total: f32, %old: f32):
    %share = arith.divf %in, %total : f32
    linalg.yield %share : f32
  } -> tensor<?x?x?xf32>
  %mixed = linalg.generic {indexing_maps = [#x, #values, #y],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
    ins(%weights, %x : tensor<?x?x?xf32>, tensor<?x?x4xf32>) outs(%zeros : tensor<?x?x4xf32>) {
  ^bb0(%a: f32, %b: f32, %old: f32):
    %product = arith.mulf %a, %b : f32
    %new = arith.addf %product, %old : f32
    linalg.yield %new : f32
  } -> tensor<?x?x4xf32>
  %by_batch = tensor.empty(%m) : tensor<?x4xf32>
  %nothing = linalg.fill ins(%zero : f32) outs(%by_batch : tensor<?x4xf32>) -> tensor<?x4xf32>
  %total = linalg.reduce { arith.addf } ins(%mixed : tensor<?x?x4xf32>) outs(%nothing : tensor<?x4xf32>) dimensions = [1]
  %integer = arith.index_cast %n : index to i64
  %count = arith.sitofp %integer : i64 to f32
  %mean = linalg.generic {indexing_maps = [affine_map<(b, j) -> (b, j)>, affine_map<(b, j) -> (b, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%total : tensor<?x4xf32>) outs(%by_batch : tensor<?x4xf32>) {
  ^bb0(%in: f32, %old: f32):
    %share = arith.divf %in, %count : f32
    linalg.yield %share : f32
  } -> tensor<?x4xf32>
  %one = tensor.empty() : tensor<4xf32>
  %from = linalg.fill ins(%zero : f32) outs(%one : tensor<4xf32>) -> tensor<4xf32>
  %of_all = linalg.reduce { arith.addf } ins(%mean : tensor<?x4xf32>) outs(%from : tensor<4xf32>) dimensions = [0]
  return %mixed, %mean, %of_all : tensor<?x?x4xf32>, tensor<?x4xf32>, tensor<4xf32>
}
// ----- BOTH
func.func @both(%x: tensor<?x3xf32>, %y: tensor<?x3xf32> {tuner.sizes = ["m"]},
    %z: tensor<?x3xf32> {tuner.sizes = ["n+m+1"]}) -> tensor<?x3xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?x3xf32>
  %m = tensor.dim %y, %c0 : tensor<?x3xf32>
  %k = tensor.dim %z, %c0 : tensor<?x3xf32>
  %both = arith.addi %n, %m : index
  %more = arith.addi %both, %c1 : index
  %fit = arith.cmpi eq, %more, %k : index
  cf.assert %fit, "of other sizes"
  %exp = math.exp %z : tensor<?x3xf32>
  return %exp : tensor<?x3xf32>
}
