// One row of a vector, as a column: extracted, transposed, added up.
// issue: https://github.com/llvm/llvm-project/issues/126196
// arguments: 2.0
// outputs: 18.0

func.func @main(%x: f32) -> f32 {
  %v = vector.broadcast %x : f32 to vector<5x3xf32>
  %f = vector.fma %v, %v, %v : vector<5x3xf32>
  %row = vector.extract_strided_slice %f {offsets = [4], sizes = [1], strides = [1]} : vector<5x3xf32> to vector<1x3xf32>
  %column = vector.transpose %row, [1, 0] : vector<1x3xf32> to vector<3x1xf32>
  %flat = vector.shape_cast %column : vector<3x1xf32> to vector<3xf32>
  %r = vector.reduction <add>, %flat : vector<3xf32> into f32
  return %r : f32
}
