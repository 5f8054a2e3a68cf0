// ----- STRIDED
#id = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d1)>
func.func @fusion(%0: memref<4x8xf32, strided<[16, 1]>>, %1: memref<8xf32> {tuner.weight},
                 %2: memref<4x8xf32, strided<[16, 1]>>) {
  %x = bufferization.to_tensor %0 restrict : memref<4x8xf32, strided<[16, 1]>> to tensor<4x8xf32>
  %w = bufferization.to_tensor %1 restrict : memref<8xf32> to tensor<8xf32>
  %e = tensor.empty() : tensor<4x8xf32>
  %y = linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]}
    ins(%x, %w : tensor<4x8xf32>, tensor<8xf32>) outs(%e : tensor<4x8xf32>) attrs = {root} {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %twice = arith.addf %a, %a : f32
    %sum = arith.addf %twice, %b : f32
    linalg.yield %sum : f32
  } -> tensor<4x8xf32>
  bufferization.materialize_in_destination %y in restrict writable %2
    : (tensor<4x8xf32>, memref<4x8xf32, strided<[16, 1]>>) -> ()
  return
}
