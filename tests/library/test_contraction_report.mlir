// ----- BROADCAST

!c = tensor<24x64xf32>
func.func @broadcast(%a: tensor<24x32xf32>, %b: tensor<32xf32>, %c: !c) -> !c {
  %r = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k)>,
    affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%a, %b : tensor<24x32xf32>, tensor<32xf32>) outs(%c : tensor<24x64xf32>) {
  ^bb0(%x: f32, %y: f32, %s: f32):
    %p = arith.mulf %x, %y : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<24x64xf32>
  return %r : tensor<24x64xf32>
}
