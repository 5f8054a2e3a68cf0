#map = affine_map<(d0) -> (41, d0)>
#map1 = affine_map<(d0) -> (d0)>
module {
  func.func @f(%arg0: memref<55xf32>, %arg1: memref<55xf32>) {
    %c14 = arith.constant 14 : index
    %c55 = arith.constant 55 : index
    %c0 = arith.constant 0 : index
    %0 = bufferization.to_tensor %arg0 restrict : memref<55xf32> to tensor<55xf32>
    %1 = bufferization.to_tensor %arg1 restrict writable : memref<55xf32> to tensor<55xf32>
    %2 = scf.for %arg2 = %c0 to %c55 step %c14 iter_args(%arg3 = %1) -> (tensor<55xf32>) {
      %3 = affine.min #map(%arg2)
      %extracted_slice = tensor.extract_slice %arg3[%3] [14] [1] : tensor<55xf32> to tensor<14xf32>
      %extracted_slice_0 = tensor.extract_slice %0[%3] [14] [1] : tensor<55xf32> to tensor<14xf32>
      %4 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel"]} ins(%extracted_slice_0 : tensor<14xf32>) outs(%extracted_slice : tensor<14xf32>) {
      ^bb0(%in: f32, %out: f32):
        %5 = arith.addf %in, %in : f32
        linalg.yield %5 : f32
      } -> tensor<14xf32>
      %inserted_slice = tensor.insert_slice %4 into %arg3[%3] [14] [1] : tensor<14xf32> into tensor<55xf32>
      scf.yield %inserted_slice : tensor<55xf32>
    }
    bufferization.materialize_in_destination %2 in restrict writable %arg1 : (tensor<55xf32>, memref<55xf32>) -> ()
    return
  }
}
