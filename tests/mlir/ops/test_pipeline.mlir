// ----- LAUNCH
module {
  func.func @f(%x: {a}, %b: memref<{rows}x{columns}x{dtype}>, %c: memref<{m}x{n2}xf32>) {
    %zero = arith.constant 0.0 : f32
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c1, %gz = %c1)
        threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
      %j = affine.apply affine_map<(d0) -> (d0 * {n})>(%bx)
      %y = memref.subview %b[{offsets}] [{sizes}] [1, 1] : memref<{rows}x{columns}x{dtype}> to {b}
      %z = memref.subview %c[0, %j] [{m}, {n}] [1, 1] : memref<{m}x{n2}xf32> to {c}
      {body}
      gpu.terminator
    }
    return
  }
}
// ----- EPILOGUE
func.func private @f_epilogue(%sum: f32) -> {result} {
  %narrow = arith.truncf %sum : f32 to {result}
  return %narrow : {result}
}
