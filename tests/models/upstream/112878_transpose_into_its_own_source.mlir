// A transposition whose destination is the tensor that a branch passes to it as source.
// issue: https://github.com/llvm/llvm-project/issues/112878
// arguments: [[1, 2], [3, 4]], True
// outputs: [[1, 3], [2, 4]], [[1, 2], [3, 4]]

func.func @main(%x: tensor<2x2xi64>, %flag: i1) -> (tensor<2x2xi64>, tensor<2x2xi64>) {
  %a = scf.if %flag -> (tensor<2x2xi64>) {
    scf.yield %x : tensor<2x2xi64>
  } else {
    scf.yield %x : tensor<2x2xi64>
  }
  %r = linalg.transpose ins(%a : tensor<2x2xi64>) outs(%x : tensor<2x2xi64>) permutation = [1, 0]
  return %r, %x : tensor<2x2xi64>, tensor<2x2xi64>
}
