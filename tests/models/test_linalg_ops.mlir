// ----- SOFTMAX
func.func @main(%x: tensor<{shape}>) -> tensor<{shape}> {
  %e = tensor.empty() : tensor<{shape}>
  %r = linalg.softmax dimension({axis}) ins(%x : tensor<{shape}>) outs(%e : tensor<{shape}>) -> tensor<{shape}>
  return %r : tensor<{shape}>
}
// ----- WINOGRAD
func.func @main(%x: tensor<1x10x10x5xf32>, %k: tensor<2x3x3x5xf32>) -> tensor<1x8x8x2xf32> {
  %zero = arith.constant 0.0 : f32
  %empty_filter = tensor.empty() : tensor<6x6x5x2xf32>
  %empty_input = tensor.empty() : tensor<6x6x2x2x1x5xf32>
  %filter = linalg.winograd_filter_transform fmr(F_4_3) ins(%k : tensor<2x3x3x5xf32>)
    outs(%empty_filter : tensor<6x6x5x2xf32>) -> tensor<6x6x5x2xf32>
  %input = linalg.winograd_input_transform fmr(F_4_3) ins(%x : tensor<1x10x10x5xf32>)
    outs(%empty_input : tensor<6x6x2x2x1x5xf32>) -> tensor<6x6x2x2x1x5xf32>
  %filters = tensor.collapse_shape %filter [[0, 1], [2], [3]] : tensor<6x6x5x2xf32> into tensor<36x5x2xf32>
  %inputs = tensor.collapse_shape %input [[0, 1], [2, 3, 4], [5]]
    : tensor<6x6x2x2x1x5xf32> into tensor<36x4x5xf32>
  %empty = tensor.empty() : tensor<36x4x2xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<36x4x2xf32>) -> tensor<36x4x2xf32>
  %products = linalg.batch_matmul ins(%inputs, %filters : tensor<36x4x5xf32>, tensor<36x5x2xf32>)
    outs(%zeros : tensor<36x4x2xf32>) -> tensor<36x4x2xf32>
  %tiles = tensor.expand_shape %products [[0, 1], [2, 3, 4], [5]] output_shape [6, 6, 2, 2, 1, 2]
    : tensor<36x4x2xf32> into tensor<6x6x2x2x1x2xf32>
  %empty_output = tensor.empty() : tensor<1x8x8x2xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty_output : tensor<1x8x8x2xf32>) -> tensor<1x8x8x2xf32>
  %r = linalg.winograd_output_transform fmr(F_4_3) ins(%tiles : tensor<6x6x2x2x1x2xf32>)
    outs(%start : tensor<1x8x8x2xf32>) -> tensor<1x8x8x2xf32>
  return %r : tensor<1x8x8x2xf32>
}
// ----- BITCAST
func.func @main(%x: tensor<4x6xf32>) -> tensor<4x6xi32> {
  %r = tensor.bitcast %x : tensor<4x6xf32> to tensor<4x6xi32>
  return %r : tensor<4x6xi32>
}
// ----- ON_MEMREFS
func.func @main(%x: memref<6x100xf32>, %y: memref<6x100xf32>) {
  linalg.softmax dimension(1) ins(%x : memref<6x100xf32>) outs(%y : memref<6x100xf32>)
  return
}
// ----- DYNAMIC_WINOGRAD
func.func @main(%k: tensor<?x3x3x5xf32>, %y: tensor<6x6x5x?xf32>) -> tensor<6x6x5x?xf32> {
  %r = linalg.winograd_filter_transform fmr(F_4_3) ins(%k : tensor<?x3x3x5xf32>)
    outs(%y : tensor<6x6x5x?xf32>) -> tensor<6x6x5x?xf32>
  return %r : tensor<6x6x5x?xf32>
}
// ----- GATHER
func.func @main(%x: tensor<4x5xf32>, %i: tensor<3x1xindex>) -> tensor<3x1x5xf32> {
  %r = tensor.gather %x[%i] gather_dims([0]) : (tensor<4x5xf32>, tensor<3x1xindex>) -> tensor<3x1x5xf32>
  return %r : tensor<3x1x5xf32>
}
