// ----- PROGRAM

#id = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d1)>
#row = affine_map<(d0, d1) -> (d0)>
func.func @main(%x: tensor<ROWSxINNERxf32>) -> tensor<ROWSxINNERxf32> {
  %w = arith.constant dense_resource<w> : tensor<INNERxHIDDENxf32>
  %v = arith.constant dense_resource<v> : tensor<HIDDENxINNERxf32>
  %b = arith.constant dense_resource<b> : tensor<HIDDENxf32>
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e0 = tensor.empty() : tensor<ROWSxHIDDENxf32>
  %e1 = tensor.empty() : tensor<ROWSxf32>
  %e2 = tensor.empty() : tensor<ROWSxINNERxf32>
  %f0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<ROWSxHIDDENxf32>) -> tensor<ROWSxHIDDENxf32>
  %h = linalg.matmul ins(%x, %w : tensor<ROWSxINNERxf32>, tensor<INNERxHIDDENxf32>)
    outs(%f0 : tensor<ROWSxHIDDENxf32>) -> tensor<ROWSxHIDDENxf32>
  %r = linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]}
    ins(%h, %b : tensor<ROWSxHIDDENxf32>, tensor<HIDDENxf32>) outs(%e0 : tensor<ROWSxHIDDENxf32>) {
  ^bb0(%in: f32, %bias: f32, %out: f32):
    %sum = arith.addf %in, %bias : f32
    %max = arith.maximumf %sum, %zero : f32
    linalg.yield %max : f32
  } -> tensor<ROWSxHIDDENxf32>
  %f1 = linalg.fill ins(%low : f32) outs(%e1 : tensor<ROWSxf32>) -> tensor<ROWSxf32>
  %m = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
    ins(%r : tensor<ROWSxHIDDENxf32>) outs(%f1 : tensor<ROWSxf32>) {
  ^bb0(%in: f32, %out: f32):
    %max = arith.maximumf %in, %out : f32
    linalg.yield %max : f32
  } -> tensor<ROWSxf32>
  %s = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
    ins(%r, %m : tensor<ROWSxHIDDENxf32>, tensor<ROWSxf32>) outs(%e0 : tensor<ROWSxHIDDENxf32>) {
  ^bb0(%in: f32, %max: f32, %out: f32):
    %d = arith.subf %in, %max : f32
    %e = math.exp %d : f32
    linalg.yield %e : f32
  } -> tensor<ROWSxHIDDENxf32>
  %f2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<ROWSxINNERxf32>) -> tensor<ROWSxINNERxf32>
  %y = linalg.matmul ins(%s, %v : tensor<ROWSxHIDDENxf32>, tensor<HIDDENxINNERxf32>)
    outs(%f2 : tensor<ROWSxINNERxf32>) -> tensor<ROWSxINNERxf32>
  return %y : tensor<ROWSxINNERxf32>
}
