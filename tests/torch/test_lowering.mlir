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
