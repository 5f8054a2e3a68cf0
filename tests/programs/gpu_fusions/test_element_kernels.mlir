// ----- SHARED_SUM

#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @group(%0: memref<4x8xf32>, %1: memref<4x8xf32>) {
  %x = bufferization.to_tensor %0 restrict : memref<4x8xf32> to tensor<4x8xf32>
  %out = bufferization.to_tensor %1 restrict writable : memref<4x8xf32> to tensor<4x8xf32>
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<4xf32>) -> tensor<4xf32>
  %sum = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<4x8xf32>) outs(%zeros : tensor<4xf32>) {
  ^bb0(%in: f32, %old: f32):
    %new = arith.addf %in, %old : f32
    linalg.yield %new : f32
  } -> tensor<4xf32>
  %r = linalg.generic {indexing_maps = [#row, #all], iterator_types = ["parallel", "parallel"]}
    ins(%sum : tensor<4xf32>) outs(%out : tensor<4x8xf32>) {
  ^bb0(%in: f32, %old: f32):
    linalg.yield %in : f32
  } -> tensor<4x8xf32>
  bufferization.materialize_in_destination %r in restrict writable %1
    : (tensor<4x8xf32>, memref<4x8xf32>) -> ()
  return
}
