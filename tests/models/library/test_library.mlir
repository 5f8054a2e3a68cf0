// ----- ON_MEMREFS
func.func @on_memrefs(%a: memref<24x32xf32>, %b: memref<32x64xf32>, %c: memref<24x64xf32>) {
  linalg.matmul ins(%a, %b : memref<24x32xf32>, memref<32x64xf32>) outs(%c : memref<24x64xf32>)
  return
}
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
// ----- COLUMN
!c = tensor<24x1xf32>
func.func @column(%a: tensor<24x32xf32>, %b: tensor<32x64xf32>, %c: !c) -> !c {
  %r = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
    affine_map<(m, n, k) -> (m, 0)>], iterator_types = ["parallel", "reduction", "reduction"]}
    ins(%a, %b : tensor<24x32xf32>, tensor<32x64xf32>) outs(%c : !c) {
  ^bb0(%x: f32, %y: f32, %s: f32):
    %p = arith.mulf %x, %y : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> !c
  return %r : !c
}
// ----- DYNAMIC
!a = tensor<?x32xf32>
!b = tensor<32x64xf32>
!c = tensor<?x64xf32>
func.func @dynamic(%a: !a, %b: !b, %c: !c) -> !c {
  %r = linalg.matmul ins(%a, %b : !a, !b) outs(%c : !c) -> !c
  return %r : !c
}
// ----- VECTOR
func.func @vector(%a: tensor<24x32xf32>, %b: tensor<32xf32>, %c: tensor<24xf32>)
  -> tensor<24xf32> {
  %r = linalg.matvec
    ins(%a, %b : tensor<24x32xf32>, tensor<32xf32>) outs(%c : tensor<24xf32>) -> tensor<24xf32>
  return %r : tensor<24xf32>
}
// ----- BUFFERS
func.func @buffers(%a: memref<24x32xf32>, %b: memref<32x64xf32>, %c: memref<24x64xf32>) {
  linalg.matmul ins(%a, %b : memref<24x32xf32>, memref<32x64xf32>) outs(%c : memref<24x64xf32>)
  return
}
