// Rows of f16 over the root of their mean square, which is summed in f32.
//
//   tuner run examples/rms_norm.mlir --target simulator --compare
#row = affine_map<(i, j) -> (i)>
#all = affine_map<(i, j) -> (i, j)>
func.func @main(%x: tensor<40x96xf16>) -> tensor<40x96xf16> {
  %zero = arith.constant 0.0 : f32
  %one_per_row = tensor.empty() : tensor<40xf32>
  %empty = tensor.empty() : tensor<40x96xf16>
  %zeros = linalg.fill ins(%zero : f32) outs(%one_per_row : tensor<40xf32>) -> tensor<40xf32>
  %squares = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<40x96xf16>) outs(%zeros : tensor<40xf32>) {
  ^bb0(%in: f16, %old: f32):
    %wide = arith.extf %in : f16 to f32
    %square = arith.mulf %wide, %wide : f32
    %new = arith.addf %square, %old : f32
    linalg.yield %new : f32
  } -> tensor<40xf32>
  %result = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
    ins(%x, %squares : tensor<40x96xf16>, tensor<40xf32>) outs(%empty : tensor<40x96xf16>) {
  ^bb0(%in: f16, %total: f32, %old: f16):
    %count = arith.constant 96.0 : f32
    %small = arith.constant 1.0e-6 : f32
    %mean = arith.divf %total, %count : f32
    %safe = arith.addf %mean, %small : f32
    %scale = math.rsqrt %safe : f32
    %wide = arith.extf %in : f16 to f32
    %scaled = arith.mulf %wide, %scale : f32
    %y = arith.truncf %scaled : f32 to f16
    linalg.yield %y : f16
  } -> tensor<40x96xf16>
  return %result : tensor<40x96xf16>
}
