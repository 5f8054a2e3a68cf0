// ----- WHOLE
func.func @f(%x: tensor<?x4xf32>, %one: tensor<1x4xf32>, %ids: tensor<?xi32>) -> TYPE {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x4xf32>
  %double = arith.muli %n, %c2 : index
  %last = arith.subi %n, %c1 : index
  BODY
  return %r : TYPE
}
// ----- COMPUTED_SHAPE
%shape = tensor.extract_slice %ids[0] [1] [1] : tensor<?xi32> to tensor<1xi32>
  %r = tensor.reshape %x(%shape) : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<?xf32>
// ----- TURNED
%shape = tensor.from_elements %c4, %n : tensor<2xindex>
  %r = tensor.reshape %x(%shape) : (tensor<?x4xf32>, tensor<2xindex>) -> tensor<?x?xf32>
// ----- OTHER_SHAPE
%shape = tensor.from_elements %n, %c2 : tensor<2xindex>
  %r = tensor.reshape %x(%shape) : (tensor<?x4xf32>, tensor<2xindex>) -> tensor<?x?xf32>
// ----- SOFTMAX
%e = tensor.empty(%n) : tensor<?x4xf32>
  %r = linalg.softmax dimension(0) ins(%x : tensor<?x4xf32>) outs(%e : tensor<?x4xf32>) -> tensor<?x4xf32>
// ----- TWICE
%e = tensor.empty(%double) : tensor<?x4xf32>
  %r = tensor.insert_slice %x into %e[0, 0] [%n, 4] [1, 1] : tensor<?x4xf32> into tensor<?x4xf32>
// ----- BEFORE_OTHERS
%r = tensor.concat dim(0) %x, %one : (tensor<?x4xf32>, tensor<1x4xf32>) -> tensor<?x4xf32>
// ----- BEFORE_THE_FIRST
%before = arith.subi %n, %c2 : index
  %r = tensor.extract_slice %x[%before, 0] [1, 4] [1, 1] : tensor<?x4xf32> to tensor<1x4xf32>
// ----- PAST_THE_END
%r = tensor.extract_slice %x[0, 0] [2, 4] [1, 1] : tensor<?x4xf32> to tensor<2x4xf32>
// ----- FROM_N_ON
%long = tensor.empty(%double) : tensor<?x4xf32>
  %r = tensor.extract_slice %long[%n, 0] [%n, 4] [1, 1] : tensor<?x4xf32> to tensor<?x4xf32>
// ----- UNDECIDED
%is = arith.cmpi ugt, %n, %c2 : index
  cf.assert %is, "of 3 rows or more"
  %r = math.exp %x : tensor<?x4xf32>
// ----- PADDED_BELOW_0
%less = arith.subi %c2, %n : index
  %r = tensor.pad %x low[0, 0] high[%less, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<?x4xf32> to tensor<?x4xf32>
// ----- INNER
%t = tensor.empty(%n) : tensor<4x?xf32>
  %r = tensor.collapse_shape %t [[0, 1]] : tensor<4x?xf32> into tensor<?xf32>
// ----- HALF
%half = arith.divui %n, %c2 : index
  %r = tensor.empty(%half) : tensor<?xf32>
// ----- DIVISOR
%e = tensor.empty(%n) : tensor<?xi32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]} ins(%ids : tensor<?xi32>) outs(%e : tensor<?xi32>) {
  ^bb0(%a: i32, %old: i32):
    %q = arith.divsi %old, %a : i32
    linalg.yield %q : i32
  } -> tensor<?xi32>
// ----- INDEX
%e = tensor.empty(%n) : tensor<?xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]} ins(%ids : tensor<?xi32>) outs(%e : tensor<?xf32>) {
  ^bb0(%a: i32, %old: f32):
    %more = arith.constant 7 : i32
    %less = arith.subi %a, %more : i32
    %at = arith.index_cast %less : i32 to index
    %element = tensor.extract %one[%c0, %at] : tensor<1x4xf32>
    linalg.yield %element : f32
  } -> tensor<?xf32>
// ----- ELEMENT
%last_one = tensor.extract %x[%last, %c0] : tensor<?x4xf32>
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.fill ins(%last_one : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
// ----- WINDOW
%flat = tensor.extract_slice %x[0, 0] [%n, 1] [1, 1] : tensor<?x4xf32> to tensor<?xf32>
  %e = tensor.empty() : tensor<1xf32>
  %r = linalg.conv_1d ins(%flat, %flat : tensor<?xf32>, tensor<?xf32>) outs(%e : tensor<1xf32>) -> tensor<1xf32>
// ----- TWO_SIZES
%e = tensor.empty(%last) : tensor<?x4xf32>
  %r = linalg.exp ins(%x : tensor<?x4xf32>) outs(%e : tensor<?x4xf32>) -> tensor<?x4xf32>
// ----- CONTROL
%is = arith.cmpi ugt, %n, %c2 : index
  %r = scf.if %is -> tensor<?x4xf32> {
    scf.yield %x : tensor<?x4xf32>
  } else {
    %other = tensor.empty(%n) : tensor<?x4xf32>
    scf.yield %other : tensor<?x4xf32>
  }
// ----- CONDITION
%e = tensor.empty(%n) : tensor<?xi32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]} ins(%ids : tensor<?xi32>) outs(%e : tensor<?xi32>) {
  ^bb0(%a: i32, %old: i32):
    %none = arith.constant 0 : i32
    %is = arith.cmpi sgt, %a, %none : i32
    cf.assert %is, "positive"
    linalg.yield %a : i32
  } -> tensor<?xi32>
// ----- LOOP_NUMBER
%e = tensor.empty(%n) : tensor<?xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      outs(%e : tensor<?xf32>) {
  ^bb0(%old: f32):
    %i = linalg.index 0 : index
    %element = tensor.extract %one[%c0, %i] : tensor<1x4xf32>
    linalg.yield %element : f32
  } -> tensor<?xf32>
// ----- COMPUTED_PADDING
%r = tensor.pad %x low[0, 0] high[1, 0] {
  ^bb0(%i: index, %j: index):
    %element = tensor.extract %one[%c0, %i] : tensor<1x4xf32>
    tensor.yield %element : f32
  } : tensor<?x4xf32> to tensor<?x4xf32>
// ----- PADDED_BY_N
%r = tensor.pad %x low[%n, 0] high[0, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<?x4xf32> to tensor<?x4xf32>
// ----- STATIC
func.func @f(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  return %x : tensor<8x4xf32>
}
// ----- MEMORY
func.func @f(%x: memref<?x4xf32>, %y: index) {
  return
}
// ----- SIZES
func.func @f(%x: tensor<?xf32> {tuner.sizes = ["n", "n"]}) -> tensor<?xf32> {
  return %x : tensor<?xf32>
}
