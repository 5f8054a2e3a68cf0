// ----- BATCH

func.func @f(%a: tensor<1x8x64xf32>, %b: tensor<1x64x32xf32>) -> tensor<1x8x32xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x8x32xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x8x32xf32>) -> tensor<1x8x32xf32>
  %c = linalg.batch_matmul ins(%a, %b : tensor<1x8x64xf32>, tensor<1x64x32xf32>)
    outs(%zeros : tensor<1x8x32xf32>) -> tensor<1x8x32xf32>
  return %c : tensor<1x8x32xf32>
}
// ----- OF_TWO

func.func @f(%a: tensor<2x8x64xf32>, %b: tensor<2x64x32xf32>, %c: tensor<2x8x32xf32>) -> tensor<2x8x32xf32> {
  %0 = linalg.batch_matmul ins(%a, %b : tensor<2x8x64xf32>, tensor<2x64x32xf32>)
    outs(%c : tensor<2x8x32xf32>) -> tensor<2x8x32xf32>
  return %0 : tensor<2x8x32xf32>
}
// ----- SHOWN_PAYLOAD

func.func @f(%x: tensor<55xf32>, %y: tensor<55xf32>) -> tensor<55xf32> {
  %c0 = arith.constant 0 : index
  %c14 = arith.constant 14 : index
  %c55 = arith.constant 55 : index
  %all = scf.for %i = %c0 to %c55 step %c14 iter_args(%z = %y) -> (tensor<55xf32>) {
    %size = affine.min affine_map<(d0) -> (-d0 + 55, 14)>(%i)
    %tile = tensor.extract_slice %x[%i] [%size] [1] : tensor<55xf32> to tensor<?xf32>
    %more = tensor.insert_slice %tile into %z[%i] [%size] [1] : tensor<?xf32> into tensor<55xf32>
    scf.yield %more : tensor<55xf32>
  }
  return %all : tensor<55xf32>
}
// ----- DOUBLED

module {
  func.func @f(%x: memref<EXTENTxf32>, %y: memref<EXTENTxf32>) {
    %input = bufferization.to_tensor %x restrict : memref<EXTENTxf32> to tensor<EXTENTxf32>
    %start = bufferization.to_tensor %y restrict writable : memref<EXTENTxf32> to tensor<EXTENTxf32>
    %two = linalg.generic {
      indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]
    } ins(%input : tensor<EXTENTxf32>) outs(%start : tensor<EXTENTxf32>) {
      ^bb0(%one: f32, %before: f32):
        %sum = arith.addf %one, %one : f32
        linalg.yield %sum : f32
    } -> tensor<EXTENTxf32>
    bufferization.materialize_in_destination %two in restrict writable %y : (tensor<EXTENTxf32>, memref<EXTENTxf32>) -> ()
    return
  }
}
