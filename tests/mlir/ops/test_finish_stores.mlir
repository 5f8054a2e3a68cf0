// ----- EPILOGUE

  func.func private @f_epilogue(%sum: f32,
      %shift: f16 {tuner.argument = 1 : i64, tuner.dimensions = array<i64: 1>},
      %scale: f32 {tuner.argument = 2 : i64, tuner.dimensions = array<i64: 0>}) -> f16 {
    %zero = arith.constant 0.0 : f32
    %wide = arith.extf %shift : f16 to f32
    %shifted = arith.addf %sum, %wide : f32
    %scaled = arith.mulf %shifted, %scale : f32
    %positive = arith.maximumf %scaled, %zero : f32
    %narrow = arith.truncf %positive : f32 to f16
    return %narrow : f16
  }
// ----- TO_F16

  func.func private @f_epilogue(%sum: f32) -> f16 {
    %narrow = arith.truncf %sum : f32 to f16
    return %narrow : f16
  }
// ----- STORE
module {
  func.func @f(%c: {c} {tuner.bounds = array<i64: {bounds}>}, %shift: memref<64xf16>,
      %scale: memref<64xf32>, %i: index, %j: index, %sums: vector<4xf32>) {
    {store} %sums, %c[%i, %j] : {types}
    return
  }{epilogue}
}
// ----- PIECES
module {
  func.func @f(%c: {c} {tuner.bounds = array<i64: {bounds}>}, %i: index, %j: index,
      %sums: vector<2xf32>) {{stores}
    return
  }{epilogue}
}
