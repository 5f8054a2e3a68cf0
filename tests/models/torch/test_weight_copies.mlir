// ----- LOOPS
// n products in a loop: it is compiled as a whole
func.func @main(%x: tensor<2x512xf32>, %n: index) -> tensor<2x1024xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %weight = arith.constant dense_resource<weight> : tensor<512x1024xf32>
  %empty = tensor.empty() : tensor<2x1024xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<2x1024xf32>) -> tensor<2x1024xf32>
  %y = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zeros) -> tensor<2x1024xf32> {
    %more = linalg.matmul ins(%x, %weight : tensor<2x512xf32>, tensor<512x1024xf32>)
      outs(%sum : tensor<2x1024xf32>) -> tensor<2x1024xf32>
    scf.yield %more : tensor<2x1024xf32>
  }
  return %y : tensor<2x1024xf32>
}
// ----- PRODUCT
func.func @main(%x: tensor<2x512xf32>) -> tensor<2x1024xf32> {
  %zero = arith.constant 0.0 : f32
  %weight = arith.constant dense_resource<weight> : tensor<512x1024xf32>
  %empty = tensor.empty() : tensor<2x1024xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<2x1024xf32>) -> tensor<2x1024xf32>
  %y = linalg.matmul ins(%x, %weight : tensor<2x512xf32>, tensor<512x1024xf32>)
    outs(%zeros : tensor<2x1024xf32>) -> tensor<2x1024xf32>
  return %y : tensor<2x1024xf32>
}
// ----- ROWS
func.func @main(%x: tensor<?x512xf32>) -> tensor<?x1024xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %weight = arith.constant dense_resource<weight> : tensor<512x1024xf32>
  %n = tensor.dim %x, %c0 : tensor<?x512xf32>
  %empty = tensor.empty(%n) : tensor<?x1024xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x1024xf32>) -> tensor<?x1024xf32>
  %y = linalg.matmul ins(%x, %weight : tensor<?x512xf32>, tensor<512x1024xf32>)
    outs(%zeros : tensor<?x1024xf32>) -> tensor<?x1024xf32>
  return %y : tensor<?x1024xf32>
}
