// ----- CHOICE
func.func @f(%a: tensor<3x4xf32>, %b: tensor<3x4xf32>, %p: i1) -> tensor<3x4xf32> {
  %x = arith.addf %a, %b : tensor<3x4xf32>
  %y = arith.mulf %a, %b : tensor<3x4xf32>
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f32
  %r = scf.if %p -> tensor<3x4xf32> {
    scf.yield %x : tensor<3x4xf32>
  } else {
    %z = tensor.insert %one into %y[%c1, %c1] : tensor<3x4xf32>
    scf.yield %z : tensor<3x4xf32>
  }
  %s = arith.addf %r, %a : tensor<3x4xf32>
  return %s : tensor<3x4xf32>
}
