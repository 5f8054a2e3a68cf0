// ----- FUNCTION
func.func @f(%c: {memory}, %x: {tile}, %n: index, %other: index, %is: i1) {
  %c0 = arith.constant 0 : index
  %any = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : {tile}
  %wide = arith.constant dense<0.0> : vector<16x16xf32>
  %i = affine.apply affine_map<()[s0] -> (s0 * 16)>()[%n]
  %i16 = affine.apply affine_map<()[s0] -> (s0 * 16 + 16)>()[%n]
  %j = affine.apply affine_map<()[s0] -> (s0 * 8)>()[%n]
  {further}
  {lines}
  return
}
