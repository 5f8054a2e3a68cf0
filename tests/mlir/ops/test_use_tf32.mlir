// ----- PAYLOAD

module {
  func.func @f(%a: OF_A, %b: OF_B, %c: vector<2x2xf32>) -> vector<2x2xf32> {
    %d = nvgpu.mma.sync(%a, %b, %c) {mmaShape = [SHAPE]} : (OF_A, OF_B, vector<2x2xf32>) -> vector<2x2xf32>
    return %d : vector<2x2xf32>
  }
}
