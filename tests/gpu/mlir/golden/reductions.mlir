module {
  gpu.module @m {
    gpu.func @k(%arg0: memref<64xf32>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %thread_id_x = gpu.thread_id x
      %0 = memref.load %arg0[%thread_id_x] : memref<64xf32>
      %thread_id_y = gpu.thread_id y
      %thread_id_z = gpu.thread_id z
      %block_dim_y = gpu.block_dim y
      %1 = arith.muli %thread_id_z, %block_dim_y : index
      %2 = arith.addi %thread_id_y, %1 : index
      %thread_id_x_0 = gpu.thread_id x
      %block_dim_x = gpu.block_dim x
      %3 = arith.muli %2, %block_dim_x : index
      %4 = arith.addi %thread_id_x_0, %3 : index
      %block_dim_x_1 = gpu.block_dim x
      %block_dim_y_2 = gpu.block_dim y
      %5 = arith.muli %block_dim_x_1, %block_dim_y_2 : index
      %block_dim_z = gpu.block_dim z
      %6 = arith.muli %5, %block_dim_z : index
      %c32 = arith.constant 32 : index
      %7 = arith.remui %4, %c32 : index
      %c32_3 = arith.constant 32 : index
      %8 = arith.divui %4, %c32_3 : index
      %alloc = memref.alloc() : memref<33xf32, #gpu.address_space<workgroup>>
      %c1 = arith.constant 1 : index
      %9 = arith.index_castui %c1 : index to i32
      %c32_i32 = arith.constant 32 : i32
      %shuffleResult, %valid = gpu.shuffle xor %0, %9, %c32_i32 : f32
      %10 = arith.addf %0, %shuffleResult : f32
      %c2 = arith.constant 2 : index
      %11 = arith.index_castui %c2 : index to i32
      %c32_i32_4 = arith.constant 32 : i32
      %shuffleResult_5, %valid_6 = gpu.shuffle xor %10, %11, %c32_i32_4 : f32
      %12 = arith.addf %10, %shuffleResult_5 : f32
      %c4 = arith.constant 4 : index
      %13 = arith.index_castui %c4 : index to i32
      %c32_i32_7 = arith.constant 32 : i32
      %shuffleResult_8, %valid_9 = gpu.shuffle xor %12, %13, %c32_i32_7 : f32
      %14 = arith.addf %12, %shuffleResult_8 : f32
      %c8 = arith.constant 8 : index
      %15 = arith.index_castui %c8 : index to i32
      %c32_i32_10 = arith.constant 32 : i32
      %shuffleResult_11, %valid_12 = gpu.shuffle xor %14, %15, %c32_i32_10 : f32
      %16 = arith.addf %14, %shuffleResult_11 : f32
      %c16 = arith.constant 16 : index
      %17 = arith.index_castui %c16 : index to i32
      %c32_i32_13 = arith.constant 32 : i32
      %shuffleResult_14, %valid_15 = gpu.shuffle xor %16, %17, %c32_i32_13 : f32
      %18 = arith.addf %16, %shuffleResult_14 : f32
      %c0 = arith.constant 0 : index
      %19 = arith.cmpi eq, %7, %c0 : index
      scf.if %19 {
        memref.store %18, %alloc[%8] : memref<33xf32, #gpu.address_space<workgroup>>
      }
      gpu.barrier
      %c32_16 = arith.constant 32 : index
      %20 = arith.ceildivui %6, %c32_16 : index
      %c0_17 = arith.constant 0 : index
      %21 = arith.cmpi eq, %8, %c0_17 : index
      scf.if %21 {
        %c1_19 = arith.constant 1 : index
        %23 = arith.subi %20, %c1_19 : index
        %24 = arith.minui %7, %23 : index
        %25 = memref.load %alloc[%24] : memref<33xf32, #gpu.address_space<workgroup>>
        %c1_20 = arith.constant 1 : index
        %26 = arith.index_castui %c1_20 : index to i32
        %c32_i32_21 = arith.constant 32 : i32
        %shuffleResult_22, %valid_23 = gpu.shuffle xor %25, %26, %c32_i32_21 : f32
        %27 = arith.addf %25, %shuffleResult_22 : f32
        %c1_24 = arith.constant 1 : index
        %28 = arith.xori %7, %c1_24 : index
        %29 = arith.cmpi slt, %28, %20 : index
        %30 = arith.select %29, %27, %25 : f32
        %c2_25 = arith.constant 2 : index
        %31 = arith.index_castui %c2_25 : index to i32
        %c32_i32_26 = arith.constant 32 : i32
        %shuffleResult_27, %valid_28 = gpu.shuffle xor %30, %31, %c32_i32_26 : f32
        %32 = arith.addf %30, %shuffleResult_27 : f32
        %c2_29 = arith.constant 2 : index
        %33 = arith.xori %7, %c2_29 : index
        %34 = arith.cmpi slt, %33, %20 : index
        %35 = arith.select %34, %32, %30 : f32
        %c4_30 = arith.constant 4 : index
        %36 = arith.index_castui %c4_30 : index to i32
        %c32_i32_31 = arith.constant 32 : i32
        %shuffleResult_32, %valid_33 = gpu.shuffle xor %35, %36, %c32_i32_31 : f32
        %37 = arith.addf %35, %shuffleResult_32 : f32
        %c4_34 = arith.constant 4 : index
        %38 = arith.xori %7, %c4_34 : index
        %39 = arith.cmpi slt, %38, %20 : index
        %40 = arith.select %39, %37, %35 : f32
        %c8_35 = arith.constant 8 : index
        %41 = arith.index_castui %c8_35 : index to i32
        %c32_i32_36 = arith.constant 32 : i32
        %shuffleResult_37, %valid_38 = gpu.shuffle xor %40, %41, %c32_i32_36 : f32
        %42 = arith.addf %40, %shuffleResult_37 : f32
        %c8_39 = arith.constant 8 : index
        %43 = arith.xori %7, %c8_39 : index
        %44 = arith.cmpi slt, %43, %20 : index
        %45 = arith.select %44, %42, %40 : f32
        %c16_40 = arith.constant 16 : index
        %46 = arith.index_castui %c16_40 : index to i32
        %c32_i32_41 = arith.constant 32 : i32
        %shuffleResult_42, %valid_43 = gpu.shuffle xor %45, %46, %c32_i32_41 : f32
        %47 = arith.addf %45, %shuffleResult_42 : f32
        %c16_44 = arith.constant 16 : index
        %48 = arith.xori %7, %c16_44 : index
        %49 = arith.cmpi slt, %48, %20 : index
        %50 = arith.select %49, %47, %45 : f32
        %c32_45 = arith.constant 32 : index
        %c0_46 = arith.constant 0 : index
        %51 = arith.cmpi eq, %7, %c0_46 : index
        scf.if %51 {
          memref.store %50, %alloc[%c32_45] : memref<33xf32, #gpu.address_space<workgroup>>
        }
      }
      gpu.barrier
      %c32_18 = arith.constant 32 : index
      %22 = memref.load %alloc[%c32_18] : memref<33xf32, #gpu.address_space<workgroup>>
      memref.store %22, %arg0[%thread_id_x] : memref<64xf32>
      gpu.return
    }
  }
}
