// Two linear layers of n rows, with tanh between them.
func.func @mlp(%x: tensor<?x512xf32>, %up: tensor<512x2048xf32>, %down: tensor<2048x512xf32>) -> tensor<?x512xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x512xf32>
  %wide = tensor.empty(%n) : tensor<?x2048xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%wide : tensor<?x2048xf32>) -> tensor<?x2048xf32>
  %h = linalg.matmul ins(%x, %up : tensor<?x512xf32>, tensor<512x2048xf32>)
    outs(%zeros : tensor<?x2048xf32>) -> tensor<?x2048xf32>
  %t = math.tanh %h : tensor<?x2048xf32>
  %narrow = tensor.empty(%n) : tensor<?x512xf32>
  %start = linalg.fill ins(%zero : f32) outs(%narrow : tensor<?x512xf32>) -> tensor<?x512xf32>
  %y = linalg.matmul ins(%t, %down : tensor<?x2048xf32>, tensor<2048x512xf32>)
    outs(%start : tensor<?x512xf32>) -> tensor<?x512xf32>
  return %y : tensor<?x512xf32>
}
