// ----- PADDED
func.func @main(%x: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %y = scf.for %i = %c0 to %c5 step %c1 iter_args(%sum = %x) -> tensor<4x16xf32> {
    %more = arith.addf %sum, %x : tensor<4x16xf32>
    scf.yield %more : tensor<4x16xf32>
  }
  return %y : tensor<4x16xf32>
}
