// ----- PART_AND_PAD

func.func @f(%a: memref<6x6xf32>, %b: memref<5x4xf32>, %c: memref<4x4xf32>) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %part = memref.subview %a[0, 0] [4, 6] [1, 1] : memref<6x6xf32> to memref<4x6xf32, strided<[6, 1]>>
  %A = bufferization.to_tensor %part restrict : memref<4x6xf32, strided<[6, 1]>> to tensor<4x6xf32>
  %B = bufferization.to_tensor %b restrict : memref<5x4xf32> to tensor<5x4xf32>
  %padded = tensor.pad %B low[0, 0] high[1, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<5x4xf32> to tensor<6x4xf32>
  %C = bufferization.to_tensor %c restrict writable : memref<4x4xf32> to tensor<4x4xf32>
  %product = linalg.matmul ins(%A, %padded : tensor<4x6xf32>, tensor<6x4xf32>) outs(%C : tensor<4x4xf32>) -> tensor<4x4xf32>
  bufferization.materialize_in_destination %product in restrict writable %c : (tensor<4x4xf32>, memref<4x4xf32>) -> ()
  return
}

// ----- WINDOW

func.func @f(%a: memref<7xf32>, %c: memref<4xf32>) {
  %A = bufferization.to_tensor %a restrict : memref<7xf32> to tensor<7xf32>
  %C = bufferization.to_tensor %c restrict writable : memref<4xf32> to tensor<4xf32>
  %sums = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i + j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (j)>],
      iterator_types = ["parallel", "parallel"]} ins(%A, %C : tensor<7xf32>, tensor<4xf32>) outs(%C : tensor<4xf32>) {
  ^bb0(%x: f32, %y: f32, %sum: f32):
    linalg.yield %x : f32
  } -> tensor<4xf32>
  return
}
