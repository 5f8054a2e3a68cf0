// A map in a loop whose destination is the empty tensor that a fill before the loop uses, too.
// issue: https://github.com/llvm/llvm-project/issues/90019
// arguments: [1.0, 2.0, 3.0], [1.0, 2.0, 3.0]
// outputs: [4.0, 8.0, 12.0]

func.func @main(%x: tensor<3xf32>, %y: tensor<3xf32>) -> tensor<3xf32> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %e = tensor.empty() : tensor<3xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%e : tensor<3xf32>) -> tensor<3xf32>
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%sum = %x) -> (tensor<3xf32>) {
    %a = linalg.map { arith.subf } ins(%zeros, %y : tensor<3xf32>, tensor<3xf32>) outs(%e : tensor<3xf32>)
    %f = tensor.empty() : tensor<3xf32>
    %b = linalg.map { arith.subf } ins(%sum, %a : tensor<3xf32>, tensor<3xf32>) outs(%f : tensor<3xf32>)
    scf.yield %b : tensor<3xf32>
  }
  return %r : tensor<3xf32>
}
