// ----- LOOP
module {
  func.func @f(%from: memref<16x64xf16>, %a: {of_a}, %b: {of_b}, %row: index, %zero: vector<2x2xf32>,
               %first: !nvgpu.device.async.token) -> vector<2x2xf32> {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %sums:3 = scf.for %k = %c0 to %c64 step %c16 iter_args(%sum = %zero, %token = %first, %stage = %c0)
        -> (vector<2x2xf32>, !nvgpu.device.async.token, index) {
      {wait}
      gpu.barrier{products}
      {other}
      %other = arith.subi %c1, %stage : index
      %copy = nvgpu.device_async_copy %from[%row, %k], %a[%other, %row, %c0], 8 : memref<16x64xf16> to {of_a}
      %group = nvgpu.device_async_create_group %copy
      scf.yield {sums}, %group, %other : vector<2x2xf32>, !nvgpu.device.async.token, index
    }
    return %sums#0 : vector<2x2xf32>
  }
}
