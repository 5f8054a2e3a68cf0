module {
  func.func @f(%arg0: memref<2x512x4xf32, strided<[2048, 4, 1]>> {tuner.guarded}, %arg1: memref<2x4x512xf32> {tuner.guarded}, %arg2: memref<512x512xf32> {tuner.visible = array<i64: -511, 0>}, %arg3: memref<2x512x3xf32> {tuner.guarded}) -> tensor<512xf32> {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c6 = arith.constant 6 : index
    %c32 = arith.constant 32 : index
    %c48 = arith.constant 48 : index
    %c64 = arith.constant 64 : index
    %c480 = arith.constant 480 : index
    %c512 = arith.constant 512 : index
    %cst = arith.constant 1.000000e+00 : f32
    %0 = tensor.empty() : tensor<512xf32>
    %1 = scf.for %arg4 = %c0 to %c2 step %c1 iter_args(%arg5 = %0) -> (tensor<512xf32>) {
      %cst_0 = arith.constant dense<2147483647> : vector<4xi32>
      %cst_1 = arith.constant dense<0> : vector<4xi32>
      %c0_2 = arith.constant 0 : index
      %c512_3 = arith.constant 512 : index
      %c1_4 = arith.constant 1 : index
      %2 = scf.for %arg6 = %c0_2 to %c512_3 step %c1_4 iter_args(%arg7 = %cst_1) -> (vector<4xi32>) {
        %c0_18 = arith.constant 0 : index
        %c1_19 = arith.constant 1 : index
        %c1_20 = arith.constant 1 : index
        %15 = scf.for %arg8 = %c0_18 to %c1_19 step %c1_20 iter_args(%arg9 = %arg7) -> (vector<4xi32>) {
          %c4_21 = arith.constant 4 : index
          %16 = arith.muli %arg8, %c4_21 : index
          %17 = vector.load %arg0[%arg4, %arg6, %16] : memref<2x512x4xf32, strided<[2048, 4, 1]>>, vector<4xf32>
          %18 = vector.bitcast %17 : vector<4xf32> to vector<4xi32>
          %19 = arith.andi %18, %cst_0 : vector<4xi32>
          %20 = arith.maxui %arg9, %19 : vector<4xi32>
          scf.yield %20 : vector<4xi32>
        }
        scf.yield %15 : vector<4xi32>
      }
      %3 = vector.reduction <maxui>, %2 : vector<4xi32> into i32
      %c1343554297_i32 = arith.constant 1343554297 : i32
      %4 = arith.cmpi ule, %3, %c1343554297_i32 : i32
      %cst_5 = arith.constant dense<2147483647> : vector<64xi32>
      %cst_6 = arith.constant dense<0> : vector<64xi32>
      %c0_7 = arith.constant 0 : index
      %c4 = arith.constant 4 : index
      %c1_8 = arith.constant 1 : index
      %5 = scf.for %arg6 = %c0_7 to %c4 step %c1_8 iter_args(%arg7 = %cst_6) -> (vector<64xi32>) {
        %c0_18 = arith.constant 0 : index
        %c8 = arith.constant 8 : index
        %c1_19 = arith.constant 1 : index
        %15 = scf.for %arg8 = %c0_18 to %c8 step %c1_19 iter_args(%arg9 = %arg7) -> (vector<64xi32>) {
          %c64_20 = arith.constant 64 : index
          %16 = arith.muli %arg8, %c64_20 : index
          %17 = vector.load %arg1[%arg4, %arg6, %16] : memref<2x4x512xf32>, vector<64xf32>
          %18 = vector.bitcast %17 : vector<64xf32> to vector<64xi32>
          %19 = arith.andi %18, %cst_5 : vector<64xi32>
          %20 = arith.maxui %arg9, %19 : vector<64xi32>
          scf.yield %20 : vector<64xi32>
        }
        scf.yield %15 : vector<64xi32>
      }
      %6 = vector.reduction <maxui>, %5 : vector<64xi32> into i32
      %c1343554297_i32_9 = arith.constant 1343554297 : i32
      %7 = arith.cmpi ule, %6, %c1343554297_i32_9 : i32
      %8 = arith.andi %4, %7 : i1
      %cst_10 = arith.constant dense<2147483647> : vector<3xi32>
      %cst_11 = arith.constant dense<0> : vector<3xi32>
      %c0_12 = arith.constant 0 : index
      %c512_13 = arith.constant 512 : index
      %c1_14 = arith.constant 1 : index
      %9 = scf.for %arg6 = %c0_12 to %c512_13 step %c1_14 iter_args(%arg7 = %cst_11) -> (vector<3xi32>) {
        %c0_18 = arith.constant 0 : index
        %c1_19 = arith.constant 1 : index
        %c1_20 = arith.constant 1 : index
        %15 = scf.for %arg8 = %c0_18 to %c1_19 step %c1_20 iter_args(%arg9 = %arg7) -> (vector<3xi32>) {
          %c3 = arith.constant 3 : index
          %16 = arith.muli %arg8, %c3 : index
          %17 = vector.load %arg3[%arg4, %arg6, %16] : memref<2x512x3xf32>, vector<3xf32>
          %18 = vector.bitcast %17 : vector<3xf32> to vector<3xi32>
          %19 = arith.andi %18, %cst_10 : vector<3xi32>
          %20 = arith.maxui %arg9, %19 : vector<3xi32>
          scf.yield %20 : vector<3xi32>
        }
        scf.yield %15 : vector<3xi32>
      }
      %10 = vector.reduction <maxui>, %9 : vector<3xi32> into i32
      %c1343554297_i32_15 = arith.constant 1343554297 : i32
      %11 = arith.cmpi ule, %10, %c1343554297_i32_15 : i32
      %12 = arith.andi %8, %11 : i1
      %c0_16 = arith.constant 0 : index
      %c512_17 = arith.constant 512 : index
      %13 = arith.select %12, %c0_16, %c512_17 : index
      %14 = scf.for %arg6 = %c0 to %c512 step %c48 iter_args(%arg7 = %arg5) -> (tensor<512xf32>) {
        %c48_18 = arith.constant 48 : index
        %15 = arith.addi %arg6, %c48_18 : index
        %c31 = arith.constant 31 : index
        %16 = arith.addi %15, %c31 : index
        %c32_19 = arith.constant 32 : index
        %17 = arith.divui %16, %c32_19 : index
        %c32_20 = arith.constant 32 : index
        %18 = arith.muli %17, %c32_20 : index
        %19 = arith.addi %18, %13 : index
        %c512_21 = arith.constant 512 : index
        %20 = arith.minsi %19, %c512_21 : index
        %21 = scf.for %arg8 = %c0 to %20 step %c64 iter_args(%arg9 = %arg7) -> (tensor<512xf32>) {
          %inserted = tensor.insert %cst into %arg9[%arg8] : tensor<512xf32>
          scf.yield %inserted : tensor<512xf32>
        } {columns_scores_whole, keys}
        %c63 = arith.constant 63 : index
        %22 = arith.addi %20, %c63 : index
        %c64_22 = arith.constant 64 : index
        %23 = arith.divui %22, %c64_22 : index
        %c64_23 = arith.constant 64 : index
        %24 = arith.muli %23, %c64_23 : index
        %c448 = arith.constant 448 : index
        %25 = arith.maxsi %24, %c448 : index
        %c512_24 = arith.constant 512 : index
        %26 = scf.for %arg8 = %25 to %c512_24 step %c64 iter_args(%arg9 = %21) -> (tensor<512xf32>) {
          %inserted = tensor.insert %cst into %arg9[%arg8] : tensor<512xf32>
          scf.yield %inserted : tensor<512xf32>
        } {columns_scores_whole, keys}
        %c48_25 = arith.constant 48 : index
        %27 = arith.addi %arg6, %c48_25 : index
        %28 = arith.addi %27, %13 : index
        %c480_26 = arith.constant 480 : index
        %29 = arith.minsi %28, %c480_26 : index
        %30 = scf.for %arg8 = %c0 to %29 step %c32 iter_args(%arg9 = %26) -> (tensor<512xf32>) {
          %inserted = tensor.insert %cst into %arg9[%arg8] : tensor<512xf32>
          scf.yield %inserted : tensor<512xf32>
        } {chunks, keys}
        %31 = scf.for %arg8 = %c0 to %c48 step %c6 iter_args(%arg9 = %30) -> (tensor<512xf32>) {
          %32 = arith.addi %arg8, %arg6 : index
          %c6_27 = arith.constant 6 : index
          %33 = arith.addi %32, %c6_27 : index
          %34 = arith.addi %33, %13 : index
          %c512_28 = arith.constant 512 : index
          %35 = arith.minsi %34, %c512_28 : index
          %36 = scf.for %arg10 = %c0 to %35 step %c1 iter_args(%arg11 = %arg9) -> (tensor<512xf32>) {
            %inserted = tensor.insert %cst into %arg11[%arg10] : tensor<512xf32>
            scf.yield %inserted : tensor<512xf32>
          } {keys}
          scf.yield %36 : tensor<512xf32>
        } {rows_mixed_whole}
        scf.yield %31 : tensor<512xf32>
      } {block}
      scf.yield %14 : tensor<512xf32>
    } {batch}
    return %1 : tensor<512xf32>
  }
}
