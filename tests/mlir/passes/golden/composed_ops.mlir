module {
  gpu.module @m {
    gpu.func @k(%arg0: memref<64xf32>) workgroup(%arg1 : memref<32xf32, #gpu.address_space<workgroup>>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c16_i32 = arith.constant 16 : i32
      %c8_i32 = arith.constant 8 : i32
      %c4_i32 = arith.constant 4 : i32
      %c2_i32 = arith.constant 2 : i32
      %c1_i32 = arith.constant 1 : i32
      %c32_i32 = arith.constant 32 : i32
      %c0_i32 = arith.constant 0 : i32
      %c31_i32 = arith.constant 31 : i32
      %thread_id_x = gpu.thread_id x
      %0 = memref.load %arg0[%thread_id_x] : memref<64xf32>
      %block_dim_x = gpu.block_dim x
      %1 = arith.index_cast %block_dim_x : index to i32
      %block_dim_y = gpu.block_dim y
      %2 = arith.index_cast %block_dim_y : index to i32
      %block_dim_z = gpu.block_dim z
      %3 = arith.index_cast %block_dim_z : index to i32
      %thread_id_x_0 = gpu.thread_id x
      %4 = arith.index_cast %thread_id_x_0 : index to i32
      %thread_id_y = gpu.thread_id y
      %5 = arith.index_cast %thread_id_y : index to i32
      %thread_id_z = gpu.thread_id z
      %6 = arith.index_cast %thread_id_z : index to i32
      %7 = arith.muli %6, %2 : i32
      %8 = arith.addi %7, %5 : i32
      %9 = arith.muli %8, %1 : i32
      %10 = arith.muli %1, %2 : i32
      %11 = arith.addi %9, %4 : i32
      %12 = arith.muli %10, %3 : i32
      %13 = arith.andi %11, %c31_i32 : i32
      %14 = arith.cmpi eq, %13, %c0_i32 : i32
      %15 = arith.subi %11, %13 : i32
      %16 = arith.subi %12, %15 : i32
      %17 = arith.cmpi slt, %16, %c32_i32 : i32
      cf.cond_br %17, ^bb1, ^bb17
    ^bb1:  // pred: ^bb0
      %shuffleResult, %valid = gpu.shuffle xor %0, %c1_i32, %16 : f32
      cf.cond_br %valid, ^bb2, ^bb3
    ^bb2:  // pred: ^bb1
      %18 = arith.addf %0, %shuffleResult : f32
      cf.br ^bb4(%18 : f32)
    ^bb3:  // pred: ^bb1
      cf.br ^bb4(%0 : f32)
    ^bb4(%19: f32):  // 2 preds: ^bb2, ^bb3
      %shuffleResult_1, %valid_2 = gpu.shuffle xor %19, %c2_i32, %16 : f32
      cf.cond_br %valid_2, ^bb5, ^bb6
    ^bb5:  // pred: ^bb4
      %20 = arith.addf %19, %shuffleResult_1 : f32
      cf.br ^bb7(%20 : f32)
    ^bb6:  // pred: ^bb4
      cf.br ^bb7(%19 : f32)
    ^bb7(%21: f32):  // 2 preds: ^bb5, ^bb6
      %shuffleResult_3, %valid_4 = gpu.shuffle xor %21, %c4_i32, %16 : f32
      cf.cond_br %valid_4, ^bb8, ^bb9
    ^bb8:  // pred: ^bb7
      %22 = arith.addf %21, %shuffleResult_3 : f32
      cf.br ^bb10(%22 : f32)
    ^bb9:  // pred: ^bb7
      cf.br ^bb10(%21 : f32)
    ^bb10(%23: f32):  // 2 preds: ^bb8, ^bb9
      %shuffleResult_5, %valid_6 = gpu.shuffle xor %23, %c8_i32, %16 : f32
      cf.cond_br %valid_6, ^bb11, ^bb12
    ^bb11:  // pred: ^bb10
      %24 = arith.addf %23, %shuffleResult_5 : f32
      cf.br ^bb13(%24 : f32)
    ^bb12:  // pred: ^bb10
      cf.br ^bb13(%23 : f32)
    ^bb13(%25: f32):  // 2 preds: ^bb11, ^bb12
      %shuffleResult_7, %valid_8 = gpu.shuffle xor %25, %c16_i32, %16 : f32
      cf.cond_br %valid_8, ^bb14, ^bb15
    ^bb14:  // pred: ^bb13
      %26 = arith.addf %25, %shuffleResult_7 : f32
      cf.br ^bb16(%26 : f32)
    ^bb15:  // pred: ^bb13
      cf.br ^bb16(%25 : f32)
    ^bb16(%27: f32):  // 2 preds: ^bb14, ^bb15
      cf.br ^bb18(%27 : f32)
    ^bb17:  // pred: ^bb0
      %shuffleResult_9, %valid_10 = gpu.shuffle xor %0, %c1_i32, %c32_i32 : f32
      %28 = arith.addf %0, %shuffleResult_9 : f32
      %shuffleResult_11, %valid_12 = gpu.shuffle xor %28, %c2_i32, %c32_i32 : f32
      %29 = arith.addf %28, %shuffleResult_11 : f32
      %shuffleResult_13, %valid_14 = gpu.shuffle xor %29, %c4_i32, %c32_i32 : f32
      %30 = arith.addf %29, %shuffleResult_13 : f32
      %shuffleResult_15, %valid_16 = gpu.shuffle xor %30, %c8_i32, %c32_i32 : f32
      %31 = arith.addf %30, %shuffleResult_15 : f32
      %shuffleResult_17, %valid_18 = gpu.shuffle xor %31, %c16_i32, %c32_i32 : f32
      %32 = arith.addf %31, %shuffleResult_17 : f32
      cf.br ^bb18(%32 : f32)
    ^bb18(%33: f32):  // 2 preds: ^bb16, ^bb17
      cf.cond_br %14, ^bb19, ^bb20
    ^bb19:  // pred: ^bb18
      %34 = arith.divsi %11, %c32_i32 : i32
      %35 = arith.index_cast %34 : i32 to index
      memref.store %33, %arg1[%35] : memref<32xf32, #gpu.address_space<workgroup>>
      cf.br ^bb21
    ^bb20:  // pred: ^bb18
      cf.br ^bb21
    ^bb21:  // 2 preds: ^bb19, ^bb20
      gpu.barrier memfence [#gpu.address_space<workgroup>]
      %36 = arith.addi %12, %c31_i32 : i32
      %37 = arith.divsi %36, %c32_i32 : i32
      %38 = arith.cmpi slt, %11, %37 : i32
      cf.cond_br %38, ^bb22, ^bb41
    ^bb22:  // pred: ^bb21
      %39 = arith.index_cast %11 : i32 to index
      %40 = memref.load %arg1[%39] : memref<32xf32, #gpu.address_space<workgroup>>
      %41 = arith.cmpi slt, %37, %c32_i32 : i32
      cf.cond_br %41, ^bb23, ^bb39
    ^bb23:  // pred: ^bb22
      %shuffleResult_19, %valid_20 = gpu.shuffle xor %40, %c1_i32, %37 : f32
      cf.cond_br %valid_20, ^bb24, ^bb25
    ^bb24:  // pred: ^bb23
      %42 = arith.addf %40, %shuffleResult_19 : f32
      cf.br ^bb26(%42 : f32)
    ^bb25:  // pred: ^bb23
      cf.br ^bb26(%40 : f32)
    ^bb26(%43: f32):  // 2 preds: ^bb24, ^bb25
      %shuffleResult_21, %valid_22 = gpu.shuffle xor %43, %c2_i32, %37 : f32
      cf.cond_br %valid_22, ^bb27, ^bb28
    ^bb27:  // pred: ^bb26
      %44 = arith.addf %43, %shuffleResult_21 : f32
      cf.br ^bb29(%44 : f32)
    ^bb28:  // pred: ^bb26
      cf.br ^bb29(%43 : f32)
    ^bb29(%45: f32):  // 2 preds: ^bb27, ^bb28
      %shuffleResult_23, %valid_24 = gpu.shuffle xor %45, %c4_i32, %37 : f32
      cf.cond_br %valid_24, ^bb30, ^bb31
    ^bb30:  // pred: ^bb29
      %46 = arith.addf %45, %shuffleResult_23 : f32
      cf.br ^bb32(%46 : f32)
    ^bb31:  // pred: ^bb29
      cf.br ^bb32(%45 : f32)
    ^bb32(%47: f32):  // 2 preds: ^bb30, ^bb31
      %shuffleResult_25, %valid_26 = gpu.shuffle xor %47, %c8_i32, %37 : f32
      cf.cond_br %valid_26, ^bb33, ^bb34
    ^bb33:  // pred: ^bb32
      %48 = arith.addf %47, %shuffleResult_25 : f32
      cf.br ^bb35(%48 : f32)
    ^bb34:  // pred: ^bb32
      cf.br ^bb35(%47 : f32)
    ^bb35(%49: f32):  // 2 preds: ^bb33, ^bb34
      %shuffleResult_27, %valid_28 = gpu.shuffle xor %49, %c16_i32, %37 : f32
      cf.cond_br %valid_28, ^bb36, ^bb37
    ^bb36:  // pred: ^bb35
      %50 = arith.addf %49, %shuffleResult_27 : f32
      cf.br ^bb38(%50 : f32)
    ^bb37:  // pred: ^bb35
      cf.br ^bb38(%49 : f32)
    ^bb38(%51: f32):  // 2 preds: ^bb36, ^bb37
      cf.br ^bb40(%51 : f32)
    ^bb39:  // pred: ^bb22
      %shuffleResult_29, %valid_30 = gpu.shuffle xor %40, %c1_i32, %c32_i32 : f32
      %52 = arith.addf %40, %shuffleResult_29 : f32
      %shuffleResult_31, %valid_32 = gpu.shuffle xor %52, %c2_i32, %c32_i32 : f32
      %53 = arith.addf %52, %shuffleResult_31 : f32
      %shuffleResult_33, %valid_34 = gpu.shuffle xor %53, %c4_i32, %c32_i32 : f32
      %54 = arith.addf %53, %shuffleResult_33 : f32
      %shuffleResult_35, %valid_36 = gpu.shuffle xor %54, %c8_i32, %c32_i32 : f32
      %55 = arith.addf %54, %shuffleResult_35 : f32
      %shuffleResult_37, %valid_38 = gpu.shuffle xor %55, %c16_i32, %c32_i32 : f32
      %56 = arith.addf %55, %shuffleResult_37 : f32
      cf.br ^bb40(%56 : f32)
    ^bb40(%57: f32):  // 2 preds: ^bb38, ^bb39
      %thread_id_y_39 = gpu.thread_id y
      %thread_id_z_40 = gpu.thread_id z
      %block_dim_y_41 = gpu.block_dim y
      %58 = arith.muli %thread_id_z_40, %block_dim_y_41 : index
      %59 = arith.addi %thread_id_y_39, %58 : index
      %thread_id_x_42 = gpu.thread_id x
      %block_dim_x_43 = gpu.block_dim x
      %60 = arith.muli %59, %block_dim_x_43 : index
      %61 = arith.addi %thread_id_x_42, %60 : index
      %c0_44 = arith.constant 0 : index
      %62 = arith.cmpi eq, %61, %c0_44 : index
      scf.if %62 {
        memref.store %57, %arg1[%c0] : memref<32xf32, #gpu.address_space<workgroup>>
      }
      cf.br ^bb42
    ^bb41:  // pred: ^bb21
      cf.br ^bb42
    ^bb42:  // 2 preds: ^bb40, ^bb41
      gpu.barrier memfence [#gpu.address_space<workgroup>]
      %63 = memref.load %arg1[%c0] : memref<32xf32, #gpu.address_space<workgroup>>
      memref.store %63, %arg0[%thread_id_x] : memref<64xf32>
      gpu.return
    }
  }
}
