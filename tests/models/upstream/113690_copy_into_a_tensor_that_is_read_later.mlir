// A copy into a tensor that a branch has passed on: what the branch passed on stays.
// issue: https://github.com/llvm/llvm-project/issues/113690
// arguments: 1, 2, True
// outputs: [1, 1, 2, 2], [[2, 2], [2, 2]]

func.func @main(%x: i16, %y: i16, %flag: i1) -> (tensor<4xi16>, tensor<2x2xi16>) {
  %made = tensor.from_elements %x, %x, %y, %y : tensor<2x2xi16>
  %kept = scf.if %flag -> (tensor<2x2xi16>) {
    scf.yield %made : tensor<2x2xi16>
  } else {
    scf.yield %made : tensor<2x2xi16>
  }
  %other = tensor.splat %y : tensor<2x2xi16>
  %copy = linalg.copy ins(%other : tensor<2x2xi16>) outs(%made : tensor<2x2xi16>) -> tensor<2x2xi16>
  %flat = tensor.collapse_shape %kept [[0, 1]] : tensor<2x2xi16> into tensor<4xi16>
  return %flat, %copy : tensor<4xi16>, tensor<2x2xi16>
}
