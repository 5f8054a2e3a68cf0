module {
  func.func @f(%arg0: memref<2x512x4xf32, strided<[2048, 4, 1]>> {tuner.guarded}, %arg1: memref<2x4x512xf32> {tuner.guarded}, %arg2: memref<512x512xf32> {tuner.visible = array<i64: -70, 7>}, %arg3: memref<2x512x3xf32> {tuner.guarded}) -> tensor<512xf32> {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c6 = arith.constant 6 : index
    %c32 = arith.constant 32 : index
    %c48 = arith.constant 48 : index
    %c64 = arith.constant 64 : index
    %c512 = arith.constant 512 : index
    %c512_0 = arith.constant 512 : index
    %cst = arith.constant 1.000000e+00 : f32
    %0 = tensor.empty() : tensor<512xf32>
    %1 = scf.for %arg4 = %c0 to %c2 step %c1 iter_args(%arg5 = %0) -> (tensor<512xf32>) {
      %cst_1 = arith.constant dense<2147483647> : vector<4xi32>
      %cst_2 = arith.constant dense<0> : vector<4xi32>
      %c0_3 = arith.constant 0 : index
      %c512_4 = arith.constant 512 : index
      %c1_5 = arith.constant 1 : index
      %2 = scf.for %arg6 = %c0_3 to %c512_4 step %c1_5 iter_args(%arg7 = %cst_2) -> (vector<4xi32>) {
        %c0_19 = arith.constant 0 : index
        %c1_20 = arith.constant 1 : index
        %c1_21 = arith.constant 1 : index
        %15 = scf.for %arg8 = %c0_19 to %c1_20 step %c1_21 iter_args(%arg9 = %arg7) -> (vector<4xi32>) {
          %c4_22 = arith.constant 4 : index
          %16 = arith.muli %arg8, %c4_22 : index
          %17 = vector.load %arg0[%arg4, %arg6, %16] : memref<2x512x4xf32, strided<[2048, 4, 1]>>, vector<4xf32>
          %18 = vector.bitcast %17 : vector<4xf32> to vector<4xi32>
          %19 = arith.andi %18, %cst_1 : vector<4xi32>
          %20 = arith.maxui %arg9, %19 : vector<4xi32>
          scf.yield %20 : vector<4xi32>
        }
        scf.yield %15 : vector<4xi32>
      }
      %3 = vector.reduction <maxui>, %2 : vector<4xi32> into i32
      %c1343554297_i32 = arith.constant 1343554297 : i32
      %4 = arith.cmpi ule, %3, %c1343554297_i32 : i32
      %cst_6 = arith.constant dense<2147483647> : vector<64xi32>
      %cst_7 = arith.constant dense<0> : vector<64xi32>
      %c0_8 = arith.constant 0 : index
      %c4 = arith.constant 4 : index
      %c1_9 = arith.constant 1 : index
      %5 = scf.for %arg6 = %c0_8 to %c4 step %c1_9 iter_args(%arg7 = %cst_7) -> (vector<64xi32>) {
        %c0_19 = arith.constant 0 : index
        %c8 = arith.constant 8 : index
        %c1_20 = arith.constant 1 : index
        %15 = scf.for %arg8 = %c0_19 to %c8 step %c1_20 iter_args(%arg9 = %arg7) -> (vector<64xi32>) {
          %c64_21 = arith.constant 64 : index
          %16 = arith.muli %arg8, %c64_21 : index
          %17 = vector.load %arg1[%arg4, %arg6, %16] : memref<2x4x512xf32>, vector<64xf32>
          %18 = vector.bitcast %17 : vector<64xf32> to vector<64xi32>
          %19 = arith.andi %18, %cst_6 : vector<64xi32>
          %20 = arith.maxui %arg9, %19 : vector<64xi32>
          scf.yield %20 : vector<64xi32>
        }
        scf.yield %15 : vector<64xi32>
      }
      %6 = vector.reduction <maxui>, %5 : vector<64xi32> into i32
      %c1343554297_i32_10 = arith.constant 1343554297 : i32
      %7 = arith.cmpi ule, %6, %c1343554297_i32_10 : i32
      %8 = arith.andi %4, %7 : i1
      %cst_11 = arith.constant dense<2147483647> : vector<3xi32>
      %cst_12 = arith.constant dense<0> : vector<3xi32>
      %c0_13 = arith.constant 0 : index
      %c512_14 = arith.constant 512 : index
      %c1_15 = arith.constant 1 : index
      %9 = scf.for %arg6 = %c0_13 to %c512_14 step %c1_15 iter_args(%arg7 = %cst_12) -> (vector<3xi32>) {
        %c0_19 = arith.constant 0 : index
        %c1_20 = arith.constant 1 : index
        %c1_21 = arith.constant 1 : index
        %15 = scf.for %arg8 = %c0_19 to %c1_20 step %c1_21 iter_args(%arg9 = %arg7) -> (vector<3xi32>) {
          %c3 = arith.constant 3 : index
          %16 = arith.muli %arg8, %c3 : index
          %17 = vector.load %arg3[%arg4, %arg6, %16] : memref<2x512x3xf32>, vector<3xf32>
          %18 = vector.bitcast %17 : vector<3xf32> to vector<3xi32>
          %19 = arith.andi %18, %cst_11 : vector<3xi32>
          %20 = arith.maxui %arg9, %19 : vector<3xi32>
          scf.yield %20 : vector<3xi32>
        }
        scf.yield %15 : vector<3xi32>
      }
      %10 = vector.reduction <maxui>, %9 : vector<3xi32> into i32
      %c1343554297_i32_16 = arith.constant 1343554297 : i32
      %11 = arith.cmpi ule, %10, %c1343554297_i32_16 : i32
      %12 = arith.andi %8, %11 : i1
      %c0_17 = arith.constant 0 : index
      %c512_18 = arith.constant 512 : index
      %13 = arith.select %12, %c0_17, %c512_18 : index
      %14 = scf.for %arg6 = %c0 to %c512_0 step %c48 iter_args(%arg7 = %arg5) -> (tensor<512xf32>) {
        %c55 = arith.constant 55 : index
        %15 = arith.addi %arg6, %c55 : index
        %c31 = arith.constant 31 : index
        %16 = arith.addi %15, %c31 : index
        %c32_19 = arith.constant 32 : index
        %17 = arith.divui %16, %c32_19 : index
        %c32_20 = arith.constant 32 : index
        %18 = arith.muli %17, %c32_20 : index
        %19 = arith.addi %18, %13 : index
        %c512_21 = arith.constant 512 : index
        %20 = arith.minsi %19, %c512_21 : index
        %c-70 = arith.constant -70 : index
        %21 = arith.addi %arg6, %c-70 : index
        %c0_22 = arith.constant 0 : index
        %22 = arith.maxsi %21, %c0_22 : index
        %c32_23 = arith.constant 32 : index
        %23 = arith.divui %22, %c32_23 : index
        %c32_24 = arith.constant 32 : index
        %24 = arith.muli %23, %c32_24 : index
        %c512_25 = arith.constant 512 : index
        %25 = arith.minsi %24, %c512_25 : index
        %c64_26 = arith.constant 64 : index
        %26 = arith.divui %25, %c64_26 : index
        %c64_27 = arith.constant 64 : index
        %27 = arith.muli %26, %c64_27 : index
        %28 = arith.subi %27, %13 : index
        %c0_28 = arith.constant 0 : index
        %29 = arith.maxsi %28, %c0_28 : index
        %30 = scf.for %arg8 = %29 to %20 step %c64 iter_args(%arg9 = %arg7) -> (tensor<512xf32>) {
          %inserted = tensor.insert %cst into %arg9[%arg8] : tensor<512xf32>
          scf.yield %inserted : tensor<512xf32>
        } {columns_scores_whole, keys}
        %c55_29 = arith.constant 55 : index
        %31 = arith.addi %arg6, %c55_29 : index
        %32 = arith.addi %31, %13 : index
        %c512_30 = arith.constant 512 : index
        %33 = arith.minsi %32, %c512_30 : index
        %c-70_31 = arith.constant -70 : index
        %34 = arith.addi %arg6, %c-70_31 : index
        %c0_32 = arith.constant 0 : index
        %35 = arith.maxsi %34, %c0_32 : index
        %c32_33 = arith.constant 32 : index
        %36 = arith.divui %35, %c32_33 : index
        %c32_34 = arith.constant 32 : index
        %37 = arith.muli %36, %c32_34 : index
        %38 = arith.subi %37, %13 : index
        %c0_35 = arith.constant 0 : index
        %39 = arith.maxsi %38, %c0_35 : index
        %40 = scf.for %arg8 = %39 to %33 step %c32 iter_args(%arg9 = %30) -> (tensor<512xf32>) {
          %inserted = tensor.insert %cst into %arg9[%arg8] : tensor<512xf32>
          scf.yield %inserted : tensor<512xf32>
        } {chunks, keys}
        %41 = scf.for %arg8 = %c0 to %c48 step %c6 iter_args(%arg9 = %40) -> (tensor<512xf32>) {
          %42 = arith.addi %arg8, %arg6 : index
          %c13 = arith.constant 13 : index
          %43 = arith.addi %42, %c13 : index
          %44 = arith.addi %43, %13 : index
          %c512_36 = arith.constant 512 : index
          %45 = arith.minsi %44, %c512_36 : index
          %c-70_37 = arith.constant -70 : index
          %46 = arith.addi %42, %c-70_37 : index
          %c0_38 = arith.constant 0 : index
          %47 = arith.maxsi %46, %c0_38 : index
          %48 = arith.subi %47, %13 : index
          %c0_39 = arith.constant 0 : index
          %49 = arith.maxsi %48, %c0_39 : index
          %50 = scf.for %arg10 = %49 to %45 step %c1 iter_args(%arg11 = %arg9) -> (tensor<512xf32>) {
            %inserted = tensor.insert %cst into %arg11[%arg10] : tensor<512xf32>
            scf.yield %inserted : tensor<512xf32>
          } {keys}
          scf.yield %50 : tensor<512xf32>
        } {rows_mixed_whole}
        scf.yield %41 : tensor<512xf32>
      } {block}
      scf.yield %14 : tensor<512xf32>
    } {batch}
    return %1 : tensor<512xf32>
  }
}
