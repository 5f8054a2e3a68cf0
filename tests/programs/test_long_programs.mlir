// ----- ARITHMETIC
func.func @main(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %y = arith.addf %x, %x : tensor<8x16xf32>
  %z = arith.mulf %y, %y : tensor<8x16xf32>
  %w = arith.addf %z, %y : tensor<8x16xf32>
  return %w : tensor<8x16xf32>
}
// ----- ADDITION
%TO = linalg.generic {indexing_maps = [#m, #m, #m], iterator_types = ["parallel", "parallel"]}
  ins(%FIRST, %one : tensor<8x16xf32>, tensor<8x16xf32>) outs(%empty : tensor<8x16xf32>) {
^bb0(%x: f32, %y: f32, %z: f32):
  %s = arith.addf %x, %y : f32
  linalg.yield %s : f32
} -> tensor<8x16xf32>
