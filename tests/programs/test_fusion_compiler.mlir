// ----- LOOP
func.func @main(%x: tensor<4xf32>, %n: index) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %y = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %x) -> tensor<4xf32> {
    %more = arith.addf %sum, %x : tensor<4xf32>
    scf.yield %more : tensor<4xf32>
  }
  return %y : tensor<4xf32>
}
