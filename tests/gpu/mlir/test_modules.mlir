// ----- CALLS
gpu.module @m {
  func.func private @declared(f32) -> f32
  func.func @twice(%a: f32) -> f32 {
    %b = arith.addf %a, %a : f32
    return %b : f32
  }
  func.func @four_times(%a: f32) -> f32 {
    %b = func.call @twice(%a) : (f32) -> f32
    %c = func.call @twice(%b) : (f32) -> f32
    return %c : f32
  }
  func.func @branches(%a: f32) -> f32 {
    cf.br ^next(%a : f32)
  ^next(%b: f32):
    return %b : f32
  }
  func.func @round(%a: f32) -> f32 {
    %b = func.call @and_round(%a) : (f32) -> f32
    return %b : f32
  }
  func.func @and_round(%a: f32) -> f32 {
    %b = func.call @round(%a) : (f32) -> f32
    return %b : f32
  }
  gpu.func @k(%x: f32, %p: memref<f32>) kernel {
    %y = func.call @twice(%x) : (f32) -> f32
    memref.store %y, %p[] : memref<f32>
    gpu.return
  }
}
