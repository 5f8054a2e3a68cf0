module {
  gpu.module @m {
    gpu.func @f(%arg0: i8, %arg1: i1, %arg2: i32, %arg3: f32) kernel {
      %0 = arith.extsi %arg0 : i8 to i32
      %1 = arith.extui %arg1 : i1 to i32
      gpu.printf "%d %d %d %f", %0, %1, %arg2, %arg3 : i32, i32, i32, f32
      gpu.return
    }
  }
}
