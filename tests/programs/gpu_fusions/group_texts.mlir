// ----- CONVOLUTION

#all = affine_map<(n, f, y, x) -> (n, f, y, x)>
#channel = affine_map<(n, f, y, x) -> (f)>
func.func @main(%x: tensor<1x3x7x6xf32>, %w: tensor<4x3x3x3xf32>,
    %scale: tensor<4xf32>, %shift: tensor<4xf32>) -> tensor<1x4x7x6xf32> {
  %zero = arith.constant 0.0 : f32
  %padded = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %zero : f32
  } : tensor<1x3x7x6xf32> to tensor<1x3x9x8xf32>
  %empty = tensor.empty() : tensor<1x4x7x6xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x4x7x6xf32>) -> tensor<1x4x7x6xf32>
  %sums = linalg.conv_2d_nchw_fchw ins(%padded, %w : tensor<1x3x9x8xf32>, tensor<4x3x3x3xf32>)
    outs(%zeros : tensor<1x4x7x6xf32>) -> tensor<1x4x7x6xf32>
  %result = linalg.generic {indexing_maps = [#all, #channel, #channel, #all],
    iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%sums, %scale, %shift : tensor<1x4x7x6xf32>, tensor<4xf32>, tensor<4xf32>)
    outs(%empty : tensor<1x4x7x6xf32>) {
  ^bb0(%sum: f32, %s: f32, %t: f32, %old: f32):
    %scaled = arith.mulf %sum, %s : f32
    %normal = arith.addf %scaled, %t : f32
    %y = arith.maximumf %normal, %zero : f32
    linalg.yield %y : f32
  } -> tensor<1x4x7x6xf32>
  return %result : tensor<1x4x7x6xf32>
}
// ----- ROWS_OF_A_TABLE

#row = affine_map<(i, j) -> (i)>
#all = affine_map<(i, j) -> (i, j)>
func.func @main(%rows: tensor<5xi64>, %table: tensor<9x8xf32>) -> tensor<5x8xf32> {
  %empty = tensor.empty() : tensor<5x8xf32>
  %found = linalg.generic {indexing_maps = [#row, #all], iterator_types = ["parallel", "parallel"]}
    ins(%rows : tensor<5xi64>) outs(%empty : tensor<5x8xf32>) {
  ^bb0(%row: i64, %old: f32):
    %i = arith.index_cast %row : i64 to index
    %j = linalg.index 1 : index
    %x = tensor.extract %table[%i, %j] : tensor<9x8xf32>
    linalg.yield %x : f32
  } -> tensor<5x8xf32>
  return %found : tensor<5x8xf32>
}
