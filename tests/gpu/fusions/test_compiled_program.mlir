// ----- DYNAMIC
func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  %y = arith.addf %x, %x : tensor<?xf32>
  return %y : tensor<?xf32>
}
// ----- SHARED_SUM

#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @fusion(%0: memref<4x8xf32>, %1: memref<4x8xf32>) {
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
// ----- ARGMAX
#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @main(%x: tensor<5x9xf32>) -> tensor<5xi64> {
  %least = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0 : i64
  %a = tensor.empty() : tensor<5xf32>
  %b = tensor.empty() : tensor<5xi64>
  %lows = linalg.fill ins(%least : f32) outs(%a : tensor<5xf32>) -> tensor<5xf32>
  %zeros = linalg.fill ins(%zero : i64) outs(%b : tensor<5xi64>) -> tensor<5xi64>
  %r:2 = linalg.generic {indexing_maps = [#all, #row, #row], iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<5x9xf32>) outs(%lows, %zeros : tensor<5xf32>, tensor<5xi64>) {
  ^bb0(%in: f32, %best: f32, %at: i64):
    %j = linalg.index 1 : index
    %number = arith.index_cast %j : index to i64
    %more = arith.cmpf ogt, %in, %best : f32
    %new = arith.select %more, %in, %best : f32
    %where = arith.select %more, %number, %at : i64
    linalg.yield %new, %where : f32, i64
  } -> (tensor<5xf32>, tensor<5xi64>)
  return %r#1 : tensor<5xi64>
}
// ----- LOOP
func.func @main(%x: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  scf.for %step = %c0 to %n step %c1 {
    scf.parallel (%i) = (%c0) to (%c64) step (%c1) {
      %old = memref.load %x[%i] : memref<64xf32>
      %new = arith.addf %old, %old : f32
      memref.store %new, %x[%i] : memref<64xf32>
      scf.reduce
    }
  }
  return
}
