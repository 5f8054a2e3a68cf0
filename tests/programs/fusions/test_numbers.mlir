// ----- SIGNED_ZEROS

#id = affine_map<(d0) -> (d0)>
func.func @main(%x: tensor<2xf32>) -> tensor<4xf32> {
  %zero = arith.constant 0.0 : f32
  %minus = arith.constant -0.0 : f32
  %one = arith.constant 1.0 : f32
  %e2 = tensor.empty() : tensor<2xf32>
  %e4 = tensor.empty() : tensor<4xf32>
  %s = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<2xf32>) outs(%e2 : tensor<2xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.mulf %a, %a : f32
    linalg.yield %r : f32
  } -> tensor<2xf32>
  %p = tensor.pad %s low[1] high[1] {
  ^bb0(%i: index):
    tensor.yield %zero : f32
  } : tensor<2xf32> to tensor<4xf32>
  %t = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%p : tensor<4xf32>) outs(%e4 : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = math.exp %a : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  %u = tensor.extract_slice %t[1] [2] [1] : tensor<4xf32> to tensor<2xf32>
  %v = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%u : tensor<2xf32>) outs(%e2 : tensor<2xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.mulf %a, %a : f32
    linalg.yield %r : f32
  } -> tensor<2xf32>
  %q = tensor.pad %v low[1] high[1] {
  ^bb0(%i: index):
    tensor.yield %minus : f32
  } : tensor<2xf32> to tensor<4xf32>
  %w = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%q : tensor<4xf32>) outs(%e4 : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.divf %one, %a : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  return %w : tensor<4xf32>
}
// ----- LARGE_INTEGER

#id = affine_map<(d0) -> (d0)>
func.func @main(%x: tensor<2xi64>) -> tensor<4xi64> {
  %large = arith.constant NUMBER : i64
  %one = arith.constant 1 : i64
  %e2 = tensor.empty() : tensor<2xi64>
  %e4 = tensor.empty() : tensor<4xi64>
  %s = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<2xi64>) outs(%e2 : tensor<2xi64>) {
  ^bb0(%a: i64, %o: i64):
    %r = arith.addi %a, %one : i64
    linalg.yield %r : i64
  } -> tensor<2xi64>
  %p = tensor.pad %s low[1] high[1] {
  ^bb0(%i: index):
    tensor.yield %large : i64
  } : tensor<2xi64> to tensor<4xi64>
  %t = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%p : tensor<4xi64>) outs(%e4 : tensor<4xi64>) {
  ^bb0(%a: i64, %o: i64):
    %r = arith.muli %a, %one : i64
    %z = arith.xori %r, %one : i64
    linalg.yield %z : i64
  } -> tensor<4xi64>
  return %t : tensor<4xi64>
}
// ----- ASSERTED_WEIGHT

#id = affine_map<(d0) -> (d0)>
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %w1 = arith.constant dense<[1, 0]> : tensor<2xi64>
  %w2 = arith.constant dense<[10.0, 20.0]> : tensor<2xf32>
  %c2 = arith.constant 2 : i64
  %ei = tensor.empty() : tensor<2xi64>
  %e = tensor.empty() : tensor<2xf32>
  %unused = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%w1 : tensor<2xi64>) outs(%ei : tensor<2xi64>) {
  ^bb0(%a: i64, %o: i64):
    %in = arith.cmpi slt, %a, %c2 : i64
    cf.assert %in, "index out of range"
    linalg.yield %a : i64
  } -> tensor<2xi64>
  %s = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%x, %w2 : tensor<2xf32>, tensor<2xf32>) outs(%e : tensor<2xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.addf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<2xf32>
  return %s : tensor<2xf32>
}
