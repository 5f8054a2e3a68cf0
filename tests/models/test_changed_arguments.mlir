// ----- CACHE
// rows of %new are written into %cache at positions; a row of each head is read, before 0 is added
func.func @step(%cache: tensor<2x16x8xf32> {tuner.new_value = 1 : i64}, %new: tensor<2x3x8xf32>,
                %at: tensor<6x1xi64>) -> (tensor<2x4x8xf32>, tensor<2x16x8xf32>) {
  %x = tensor.collapse_shape %cache [[0, 1], [2]] : tensor<2x16x8xf32> into tensor<32x8xf32>
  %rows = tensor.collapse_shape %new [[0, 1], [2]] : tensor<2x3x8xf32> into tensor<6x8xf32>
  %r = tensor.scatter %rows into %x[%at] scatter_dims([0]) unique
    : (tensor<6x8xf32>, tensor<32x8xf32>, tensor<6x1xi64>) -> tensor<32x8xf32>
  %y = tensor.expand_shape %r [[0, 1], [2]] output_shape [2, 16, 8] : tensor<32x8xf32> into tensor<2x16x8xf32>
  %first = tensor.extract_slice %y[0, 0, 0] [2, 4, 8] [1, 1, 1] : tensor<2x16x8xf32> to tensor<2x4x8xf32>
  %twice = arith.addf %first, %first : tensor<2x4x8xf32>
  return %twice, %y : tensor<2x4x8xf32>, tensor<2x16x8xf32>
}
// ----- TWO_WRITES
func.func @step(%x: tensor<16x8xf32> {tuner.new_value = 0 : i64}, %rows: tensor<3x8xf32>,
                %at: tensor<3x1xi32>) -> (tensor<16x8xf32>, tensor<3x8xf32>) {
  %y = tensor.scatter %rows into %x[%at] scatter_dims([0]) unique
    : (tensor<3x8xf32>, tensor<16x8xf32>, tensor<3x1xi32>) -> tensor<16x8xf32>
  %twice = arith.addf %rows, %rows : tensor<3x8xf32>
  %z = tensor.insert_slice %twice into %y[2, 0] [3, 8] [1, 1] : tensor<3x8xf32> into tensor<16x8xf32>
  return %z, %twice : tensor<16x8xf32>, tensor<3x8xf32>
}
// ----- READ_AFTER
// the old numbers are read after the write
func.func @step(%x: tensor<16x8xf32> {tuner.new_value = 0 : i64}, %rows: tensor<3x8xf32>,
                %at: tensor<3x1xi64>) -> (tensor<16x8xf32>, tensor<16x8xf32>) {
  %y = tensor.scatter %rows into %x[%at] scatter_dims([0]) unique
    : (tensor<3x8xf32>, tensor<16x8xf32>, tensor<3x1xi64>) -> tensor<16x8xf32>
  %difference = arith.subf %y, %x : tensor<16x8xf32>
  return %y, %difference : tensor<16x8xf32>, tensor<16x8xf32>
}
// ----- READ_BETWEEN
// the first write's numbers are read after the second one
func.func @step(%x: tensor<16x8xf32> {tuner.new_value = 0 : i64}, %rows: tensor<3x8xf32>,
                %at: tensor<3x1xi64>) -> (tensor<16x8xf32>, tensor<16x8xf32>) {
  %y = tensor.scatter %rows into %x[%at] scatter_dims([0]) unique
    : (tensor<3x8xf32>, tensor<16x8xf32>, tensor<3x1xi64>) -> tensor<16x8xf32>
  %twice = arith.addf %rows, %rows : tensor<3x8xf32>
  %z = tensor.scatter %twice into %y[%at] scatter_dims([0]) unique
    : (tensor<3x8xf32>, tensor<16x8xf32>, tensor<3x1xi64>) -> tensor<16x8xf32>
  %difference = arith.subf %z, %y : tensor<16x8xf32>
  return %z, %difference : tensor<16x8xf32>, tensor<16x8xf32>
}
// ----- OWN_ROWS
// rows of the old numbers are written to other places of it
func.func @step(%x: tensor<16x8xf32> {tuner.new_value = 0 : i64}, %at: tensor<16x1xi64>)
    -> (tensor<16x8xf32>, tensor<8xf32>) {
  %y = tensor.scatter %x into %x[%at] scatter_dims([0]) unique
    : (tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x1xi64>) -> tensor<16x8xf32>
  %zero = arith.constant dense<0.0> : tensor<8xf32>
  %sums = linalg.reduce ins(%y : tensor<16x8xf32>) outs(%zero : tensor<8xf32>) dimensions = [0]
    (%one: f32, %sum: f32) {
      %more = arith.addf %one, %sum : f32
      linalg.yield %more : f32
    }
  return %y, %sums : tensor<16x8xf32>, tensor<8xf32>
}
// ----- SHIFTED
// all of %x is new, of its old numbers; the result is the old one
func.func @step(%x: tensor<16x8xf32> {tuner.new_value = 1 : i64}, %row: tensor<1x8xf32>)
    -> (tensor<16x8xf32>, tensor<16x8xf32>) {
  %rest = tensor.extract_slice %x[1, 0] [15, 8] [1, 1] : tensor<16x8xf32> to tensor<15x8xf32>
  %y = tensor.concat dim(0) %rest, %row : (tensor<15x8xf32>, tensor<1x8xf32>) -> tensor<16x8xf32>
  return %x, %y : tensor<16x8xf32>, tensor<16x8xf32>
}
// ----- COUNTED
func.func @step(%x: tensor<4xf32>, %count: tensor<4xf32> {tuner.new_value = 0 : i64}) -> tensor<4xf32> {
  %y = arith.addf %x, %count : tensor<4xf32>
  return %y : tensor<4xf32>
}
// ----- FILLED
func.func @step(%x: tensor<16x8xi32> {tuner.new_value = 1 : i64}, %at: tensor<3x1xi64>)
    -> (tensor<16x8xi32>, tensor<16x8xi32>) {
  %sevens = arith.constant dense<7> : tensor<3x8xi32>
  %y = tensor.scatter %sevens into %x[%at] scatter_dims([0]) unique
    : (tensor<3x8xi32>, tensor<16x8xi32>, tensor<3x1xi64>) -> tensor<16x8xi32>
  %z = arith.addi %y, %y : tensor<16x8xi32>
  return %z, %y : tensor<16x8xi32>, tensor<16x8xi32>
}
// ----- COPIED
// no argument changes: the write begins with a copy
func.func @step(%x: tensor<16x8xf32>, %rows: tensor<3x8xf32>, %at: tensor<3x1xi64>) -> tensor<16x8xf32> {
  %y = tensor.scatter %rows into %x[%at] scatter_dims([0]) unique
    : (tensor<3x8xf32>, tensor<16x8xf32>, tensor<3x1xi64>) -> tensor<16x8xf32>
  return %y : tensor<16x8xf32>
}
// ----- SWAPPED
func.func @step(%x: tensor<4xf32> {tuner.new_value = 1 : i64}, %y: tensor<4xf32> {tuner.new_value = 0 : i64})
    -> (tensor<4xf32>, tensor<4xf32>) {
  return %x, %y : tensor<4xf32>, tensor<4xf32>
}
