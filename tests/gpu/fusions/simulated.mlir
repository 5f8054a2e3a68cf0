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
// ----- LAYER_NORM
#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>
func.func @main(%x: tensor<6x75xf32>, %scale: tensor<75xf32>, %shift: tensor<75xf32>) -> tensor<6x75xf32> {
  %zero = arith.constant 0.0 : f32
  %count = arith.constant 75.0 : f32
  %small = arith.constant 1.0e-5 : f32
  %one = tensor.empty() : tensor<6xf32>
  %whole = tensor.empty() : tensor<6x75xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%one : tensor<6xf32>) -> tensor<6xf32>
  %sum = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<6x75xf32>) outs(%zeros : tensor<6xf32>) {
  ^bb0(%in: f32, %old: f32):
    %new = arith.addf %in, %old : f32
    linalg.yield %new : f32
  } -> tensor<6xf32>
  %centered = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
    ins(%x, %sum : tensor<6x75xf32>, tensor<6xf32>) outs(%whole : tensor<6x75xf32>) {
  ^bb0(%in: f32, %total: f32, %old: f32):
    %mean = arith.divf %total, %count : f32
    %distance = arith.subf %in, %mean : f32
    linalg.yield %distance : f32
  } -> tensor<6x75xf32>
  %squares = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
    ins(%centered : tensor<6x75xf32>) outs(%zeros : tensor<6xf32>) {
  ^bb0(%in: f32, %old: f32):
    %square = arith.mulf %in, %in : f32
    %new = arith.addf %square, %old : f32
    linalg.yield %new : f32
  } -> tensor<6xf32>
  %root = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
    iterator_types = ["parallel"]} ins(%squares : tensor<6xf32>) outs(%one : tensor<6xf32>) {
  ^bb0(%total: f32, %old: f32):
    %mean = arith.divf %total, %count : f32
    %safe = arith.addf %mean, %small : f32
    %inverse = math.rsqrt %safe : f32
    linalg.yield %inverse : f32
  } -> tensor<6xf32>
  %result = linalg.generic {indexing_maps = [#all, #row, #column, #column, #all],
    iterator_types = ["parallel", "parallel"]}
    ins(%centered, %root, %scale, %shift : tensor<6x75xf32>, tensor<6xf32>, tensor<75xf32>, tensor<75xf32>)
    outs(%whole : tensor<6x75xf32>) {
  ^bb0(%in: f32, %by: f32, %s: f32, %t: f32, %old: f32):
    %normal = arith.mulf %in, %by : f32
    %scaled = arith.mulf %normal, %s : f32
    %y = arith.addf %scaled, %t : f32
    linalg.yield %y : f32
  } -> tensor<6x75xf32>
  return %result : tensor<6x75xf32>
}
