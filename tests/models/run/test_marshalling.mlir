// ----- OF_TENSORS
func.func @f(%a: tensor<16xf32>) -> tensor<16xf32> {
  %e = tensor.empty() : tensor<16xf32>
  %s = linalg.NAME ins(%a : tensor<16xf32>) outs(%e : tensor<16xf32>) -> tensor<16xf32>
  return %s : tensor<16xf32>
}
// ----- OP
func.func @f(%a: memref<16xf32>, %b: memref<16xf32>, %n: memref<16xi32>, %y: memref<16xf32>) {
  affine.for %i = 0 to 16 {
    %x = affine.load %a[%i] : memref<16xf32>
    %z = affine.load %b[%i] : memref<16xf32>
    %k = affine.load %n[%i] : memref<16xi32>
    COMPUTE
    affine.store %r, %y[%i] : memref<16xf32>
  }
  return
}
// ----- NEXT_TO_KERNELS
func.func @f(%x: f32, %y: memref<64xf32>) {
  %e = math.exp %x : f32
  %r = math.rsqrt %e : f32
  linalg.fill ins(%r : f32) outs(%y : memref<64xf32>)
  return
}
