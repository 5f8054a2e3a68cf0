// ----- CONVOLUTION
module {
  func.func @f(%x: memref<{x}xf32>, %w: memref<{w}xf32>{weight}, %y: memref<{y}xf32>) {
    %input = bufferization.to_tensor %x restrict : memref<{x}xf32> to tensor<{x}xf32>
    %weights = bufferization.to_tensor %w restrict : memref<{w}xf32> to tensor<{w}xf32>
    %start = bufferization.to_tensor %y restrict writable : memref<{y}xf32> to tensor<{y}xf32>
    {more}
    %sums = linalg.{name} {{mark}dilations = {ones}, strides = {ones}}
      ins(%input, %weights : tensor<{x}xf32>, tensor<{w}xf32>) outs(%start : tensor<{y}xf32>)
      -> tensor<{y}xf32>
    bufferization.materialize_in_destination %sums in restrict writable %y
      : (tensor<{y}xf32>, memref<{y}xf32>) -> ()
    return
  }
}

// ----- ROWS
module {
  func.func @f(%x: memref<2x1x2x{channels}xbf16>, %k_groups: memref<2x1x2x{pairs}xi32>)
      attributes {llvm.emit_c_interface} {
    return
  }
}
