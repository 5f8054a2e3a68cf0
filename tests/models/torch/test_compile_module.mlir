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
// ----- CRASHING
func.func @main(%x: !torch.vtensor<[4],ui8>) -> !torch.vtensor<[4],ui8> {
  %two = torch.constant.int 2
  %y = torch.aten.floor_divide.Scalar %x, %two
    : !torch.vtensor<[4],ui8>, !torch.int -> !torch.vtensor<[4],ui8>
  return %y : !torch.vtensor<[4],ui8>
}
// ----- WEIGHTED
func.func @main() -> !torch.vtensor<[2],f32> {
  %w = torch.vtensor.literal(dense_resource<weight> : tensor<2xf32>) : !torch.vtensor<[2],f32>
  return %w : !torch.vtensor<[2],f32>
}

{-#
  dialect_resources: { builtin: { weight: "0x04000000not sent" } }
#-}
// ----- NEGATED
func.func @main(%x: !torch.vtensor<[4],si64>) -> !torch.vtensor<[4],si64> {
  %y = torch.aten.neg %x : !torch.vtensor<[4],si64> -> !torch.vtensor<[4],si64> loc("integers aten.neg":1:0)
  return %y : !torch.vtensor<[4],si64>
}
