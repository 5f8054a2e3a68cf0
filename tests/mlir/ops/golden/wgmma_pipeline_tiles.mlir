#map = affine_map<(d0) -> (d0 * 64)>
#map1 = affine_map<()[s0, s1] -> (s0 mod 2)>
#map2 = affine_map<()[s0, s1] -> (s0 floordiv 2)>
module {
  func.func @f(%arg0: memref<64x32xf32>, %arg1: memref<128x32xf32>, %arg2: memref<64x128xf32>) {
    %cst = arith.constant 0.000000e+00 : f32
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %cast = memref.cast %arg0 : memref<64x32xf32> to memref<*xf32>
    %c64 = arith.constant 64 : index
    %c32 = arith.constant 32 : index
    %0 = nvgpu.tma.create.descriptor %cast box[%c64, %c32] {tuner.tf32} : memref<*xf32> -> <tensor = memref<64x32xf32, 3>, swizzle = swizzle_128b, l2promo = l2promo_256b, oob = zero, interleave = none>
    %1 = builtin.unrealized_conversion_cast %0 : !nvgpu.tensormap.descriptor<tensor = memref<64x32xf32, 3>, swizzle = swizzle_128b, l2promo = l2promo_256b, oob = zero, interleave = none> to !llvm.ptr
    %cast_0 = memref.cast %arg1 : memref<128x32xf32> to memref<*xf32>
    %c64_1 = arith.constant 64 : index
    %c32_2 = arith.constant 32 : index
    %2 = nvgpu.tma.create.descriptor %cast_0 box[%c64_1, %c32_2] {tuner.tf32} : memref<*xf32> -> <tensor = memref<64x32xf32, 3>, swizzle = swizzle_128b, l2promo = l2promo_256b, oob = zero, interleave = none>
    %3 = builtin.unrealized_conversion_cast %2 : !nvgpu.tensormap.descriptor<tensor = memref<64x32xf32, 3>, swizzle = swizzle_128b, l2promo = l2promo_256b, oob = zero, interleave = none> to !llvm.ptr
    %c256 = arith.constant 256 : index
    %c1_3 = arith.constant 1 : index
    %c1_4 = arith.constant 1 : index
    gpu.launch blocks(%arg3, %arg4, %arg5) in (%arg9 = %c1_3, %arg10 = %c1_4, %arg11 = %c1) threads(%arg6, %arg7, %arg8) in (%arg12 = %c256, %arg13 = %c1, %arg14 = %c1) {
      %4 = affine.apply #map(%arg3)
      %subview = memref.subview %arg1[%4, 0] [64, 32] [1, 1] : memref<128x32xf32> to memref<64x32xf32, strided<[32, 1], offset: ?>>
      %subview_5 = memref.subview %arg2[0, %4] [64, 64] [1, 1] : memref<64x128xf32> to memref<64x64xf32, strided<[128, 1], offset: ?>>
      %thread_id_x = gpu.thread_id x
      %5 = arith.index_cast %thread_id_x : index to i32
      %c5_i32 = arith.constant 5 : i32
      %6 = arith.shrui %5, %c5_i32 : i32
      %c-1_i32 = arith.constant -1 : i32
      %c0_i32 = arith.constant 0 : i32
      %c31_i32 = arith.constant 31 : i32
      %7 = nvvm.shfl.sync idx %c-1_i32, %6, %c0_i32, %c31_i32 : i32 -> i32
      %alloc = memref.alloc() {alignment = 1024 : i64} : memref<32800xi8, #gpu.address_space<workgroup>>
      %intptr = memref.extract_aligned_pointer_as_index %alloc : memref<32800xi8, #gpu.address_space<workgroup>> -> index
      %8 = arith.index_cast %intptr : index to i32
      %c0_i32_6 = arith.constant 0 : i32
      %9 = arith.cmpi eq, %5, %c0_i32_6 : i32
      scf.if %9 {
        %c0_i32_7 = arith.constant 0 : i32
        %c8_i32 = arith.constant 8 : i32
        %11 = arith.muli %c0_i32_7, %c8_i32 : i32
        %12 = arith.addi %11, %8 : i32
        %c32768_i32 = arith.constant 32768 : i32
        %13 = arith.addi %12, %c32768_i32 : i32
        %14 = llvm.inttoptr %13 : i32 to !llvm.ptr<3>
        %c1_i32 = arith.constant 1 : i32
        nvvm.mbarrier.init %14, %c1_i32 : !llvm.ptr<3>, i32
        %c0_i32_8 = arith.constant 0 : i32
        %c8_i32_9 = arith.constant 8 : i32
        %15 = arith.muli %c0_i32_8, %c8_i32_9 : i32
        %16 = arith.addi %15, %8 : i32
        %c32784_i32 = arith.constant 32784 : i32
        %17 = arith.addi %16, %c32784_i32 : i32
        %18 = llvm.inttoptr %17 : i32 to !llvm.ptr<3>
        %c1_i32_10 = arith.constant 1 : i32
        nvvm.mbarrier.init %18, %c1_i32_10 : !llvm.ptr<3>, i32
        %c1_i32_11 = arith.constant 1 : i32
        %c8_i32_12 = arith.constant 8 : i32
        %19 = arith.muli %c1_i32_11, %c8_i32_12 : i32
        %20 = arith.addi %19, %8 : i32
        %c32768_i32_13 = arith.constant 32768 : i32
        %21 = arith.addi %20, %c32768_i32_13 : i32
        %22 = llvm.inttoptr %21 : i32 to !llvm.ptr<3>
        %c1_i32_14 = arith.constant 1 : i32
        nvvm.mbarrier.init %22, %c1_i32_14 : !llvm.ptr<3>, i32
        %c1_i32_15 = arith.constant 1 : i32
        %c8_i32_16 = arith.constant 8 : i32
        %23 = arith.muli %c1_i32_15, %c8_i32_16 : i32
        %24 = arith.addi %23, %8 : i32
        %c32784_i32_17 = arith.constant 32784 : i32
        %25 = arith.addi %24, %c32784_i32_17 : i32
        %26 = llvm.inttoptr %25 : i32 to !llvm.ptr<3>
        %c1_i32_18 = arith.constant 1 : i32
        nvvm.mbarrier.init %26, %c1_i32_18 : !llvm.ptr<3>, i32
        nvvm.fence.mbarrier.init
        nvvm.prefetch tensormap, %1 : !llvm.ptr
        nvvm.prefetch tensormap, %3 : !llvm.ptr
      }
      gpu.barrier
      %c4_i32 = arith.constant 4 : i32
      %10 = arith.cmpi ult, %7, %c4_i32 : i32
      scf.if %10 {
        %c2_i32 = arith.constant 2 : i32
        %11 = arith.shrui %7, %c2_i32 : i32
        %c127_i32 = arith.constant 127 : i32
        %12 = arith.andi %5, %c127_i32 : i32
        %c0_i32_7 = arith.constant 0 : i32
        %c0_i32_8 = arith.constant 0 : i32
        %block_id_x = gpu.block_id x
        %13 = arith.index_cast %block_id_x : index to i32
        %c1_i32 = arith.constant 1 : i32
        %14 = arith.divui %13, %c1_i32 : i32
        %c2_i32_9 = arith.constant 2 : i32
        %c1_i32_10 = arith.constant 1 : i32
        %15:2 = scf.for %arg15 = %14 to %c2_i32_9 step %c1_i32_10 iter_args(%arg16 = %c0_i32_7, %arg17 = %c0_i32_8) -> (i32, i32)  : i32 {
          %16 = llvm.mlir.undef : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
          %c8_i32 = arith.constant 8 : i32
          %17 = arith.muli %arg16, %c8_i32 : i32
          %18 = arith.addi %17, %8 : i32
          %c32768_i32 = arith.constant 32768 : i32
          %19 = arith.addi %18, %c32768_i32 : i32
          %20 = llvm.inttoptr %19 : i32 to !llvm.ptr<3>
          %c10000000_i32 = arith.constant 10000000 : i32
          nvvm.mbarrier.try_wait.parity %20, %arg17, %c10000000_i32 : !llvm.ptr<3>, i32, i32
          %c8192_i32 = arith.constant 8192 : i32
          %21 = arith.muli %11, %c8192_i32 : i32
          %c16384_i32 = arith.constant 16384 : i32
          %22 = arith.muli %arg16, %c16384_i32 : i32
          %23 = arith.addi %22, %8 : i32
          %24 = arith.addi %23, %21 : i32
          %c4_i32_11 = arith.constant 4 : i32
          %25 = arith.shrui %24, %c4_i32_11 : i32
          %c16383_i32 = arith.constant 16383 : i32
          %26 = arith.andi %25, %c16383_i32 : i32
          %27 = arith.extui %26 : i32 to i64
          %c4611686293305360384_i64 = arith.constant 4611686293305360384 : i64
          %28 = arith.ori %27, %c4611686293305360384_i64 : i64
          %c16384_i32_12 = arith.constant 16384 : i32
          %29 = arith.muli %arg16, %c16384_i32_12 : i32
          %30 = arith.addi %29, %8 : i32
          %c8192_i32_13 = arith.constant 8192 : i32
          %31 = arith.addi %30, %c8192_i32_13 : i32
          %c4_i32_14 = arith.constant 4 : i32
          %32 = arith.shrui %31, %c4_i32_14 : i32
          %c16383_i32_15 = arith.constant 16383 : i32
          %33 = arith.andi %32, %c16383_i32_15 : i32
          %34 = arith.extui %33 : i32 to i64
          %c4611686293305360384_i64_16 = arith.constant 4611686293305360384 : i64
          %35 = arith.ori %34, %c4611686293305360384_i64_16 : i64
          nvvm.wgmma.fence.aligned
          %36 = nvvm.wgmma.mma_async %28, %35, %16, <m = 64, n = 64, k = 8>, D[<f32>, <zero>], A[<tf32>, <one>, <row>], B[<tf32>, <one>, <col>] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
          %c2_i64 = arith.constant 2 : i64
          %37 = arith.addi %28, %c2_i64 : i64
          %c2_i64_17 = arith.constant 2 : i64
          %38 = arith.addi %35, %c2_i64_17 : i64
          %39 = nvvm.wgmma.mma_async %37, %38, %36, <m = 64, n = 64, k = 8>, D[<f32>, <one>], A[<tf32>, <one>, <row>], B[<tf32>, <one>, <col>] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
          %c4_i64 = arith.constant 4 : i64
          %40 = arith.addi %28, %c4_i64 : i64
          %c4_i64_18 = arith.constant 4 : i64
          %41 = arith.addi %35, %c4_i64_18 : i64
          %42 = nvvm.wgmma.mma_async %40, %41, %39, <m = 64, n = 64, k = 8>, D[<f32>, <one>], A[<tf32>, <one>, <row>], B[<tf32>, <one>, <col>] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
          %c6_i64 = arith.constant 6 : i64
          %43 = arith.addi %28, %c6_i64 : i64
          %c6_i64_19 = arith.constant 6 : i64
          %44 = arith.addi %35, %c6_i64_19 : i64
          %45 = nvvm.wgmma.mma_async %43, %44, %42, <m = 64, n = 64, k = 8>, D[<f32>, <one>], A[<tf32>, <one>, <row>], B[<tf32>, <one>, <col>] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
          nvvm.wgmma.commit.group.sync.aligned
          %c1_i32_20 = arith.constant 1 : i32
          %46 = arith.addi %arg16, %c1_i32_20 : i32
          %c2_i32_21 = arith.constant 2 : i32
          %47 = arith.cmpi eq, %46, %c2_i32_21 : i32
          %c0_i32_22 = arith.constant 0 : i32
          %48 = arith.select %47, %c0_i32_22, %46 : i32
          %49 = arith.extui %47 : i1 to i32
          %50 = arith.xori %arg17, %49 : i32
          %c1_i32_23 = arith.constant 1 : i32
          %c1_i32_24 = arith.constant 1 : i32
          %c1_i32_25 = arith.constant 1 : i32
          %51:4 = scf.for %arg18 = %c1_i32_23 to %c1_i32_24 step %c1_i32_25 iter_args(%arg19 = %48, %arg20 = %50, %arg21 = %arg16, %arg22 = %45) -> (i32, i32, i32, !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>)  : i32 {
            %c8_i32_41 = arith.constant 8 : i32
            %133 = arith.muli %arg19, %c8_i32_41 : i32
            %134 = arith.addi %133, %8 : i32
            %c32768_i32_42 = arith.constant 32768 : i32
            %135 = arith.addi %134, %c32768_i32_42 : i32
            %136 = llvm.inttoptr %135 : i32 to !llvm.ptr<3>
            %c10000000_i32_43 = arith.constant 10000000 : i32
            nvvm.mbarrier.try_wait.parity %136, %arg20, %c10000000_i32_43 : !llvm.ptr<3>, i32, i32
            %c8192_i32_44 = arith.constant 8192 : i32
            %137 = arith.muli %11, %c8192_i32_44 : i32
            %c16384_i32_45 = arith.constant 16384 : i32
            %138 = arith.muli %arg19, %c16384_i32_45 : i32
            %139 = arith.addi %138, %8 : i32
            %140 = arith.addi %139, %137 : i32
            %c4_i32_46 = arith.constant 4 : i32
            %141 = arith.shrui %140, %c4_i32_46 : i32
            %c16383_i32_47 = arith.constant 16383 : i32
            %142 = arith.andi %141, %c16383_i32_47 : i32
            %143 = arith.extui %142 : i32 to i64
            %c4611686293305360384_i64_48 = arith.constant 4611686293305360384 : i64
            %144 = arith.ori %143, %c4611686293305360384_i64_48 : i64
            %c16384_i32_49 = arith.constant 16384 : i32
            %145 = arith.muli %arg19, %c16384_i32_49 : i32
            %146 = arith.addi %145, %8 : i32
            %c8192_i32_50 = arith.constant 8192 : i32
            %147 = arith.addi %146, %c8192_i32_50 : i32
            %c4_i32_51 = arith.constant 4 : i32
            %148 = arith.shrui %147, %c4_i32_51 : i32
            %c16383_i32_52 = arith.constant 16383 : i32
            %149 = arith.andi %148, %c16383_i32_52 : i32
            %150 = arith.extui %149 : i32 to i64
            %c4611686293305360384_i64_53 = arith.constant 4611686293305360384 : i64
            %151 = arith.ori %150, %c4611686293305360384_i64_53 : i64
            nvvm.wgmma.fence.aligned
            %152 = nvvm.wgmma.mma_async %144, %151, %arg22, <m = 64, n = 64, k = 8>, D[<f32>, <one>], A[<tf32>, <one>, <row>], B[<tf32>, <one>, <col>] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
            %c2_i64_54 = arith.constant 2 : i64
            %153 = arith.addi %144, %c2_i64_54 : i64
            %c2_i64_55 = arith.constant 2 : i64
            %154 = arith.addi %151, %c2_i64_55 : i64
            %155 = nvvm.wgmma.mma_async %153, %154, %152, <m = 64, n = 64, k = 8>, D[<f32>, <one>], A[<tf32>, <one>, <row>], B[<tf32>, <one>, <col>] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
            %c4_i64_56 = arith.constant 4 : i64
            %156 = arith.addi %144, %c4_i64_56 : i64
            %c4_i64_57 = arith.constant 4 : i64
            %157 = arith.addi %151, %c4_i64_57 : i64
            %158 = nvvm.wgmma.mma_async %156, %157, %155, <m = 64, n = 64, k = 8>, D[<f32>, <one>], A[<tf32>, <one>, <row>], B[<tf32>, <one>, <col>] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
            %c6_i64_58 = arith.constant 6 : i64
            %159 = arith.addi %144, %c6_i64_58 : i64
            %c6_i64_59 = arith.constant 6 : i64
            %160 = arith.addi %151, %c6_i64_59 : i64
            %161 = nvvm.wgmma.mma_async %159, %160, %158, <m = 64, n = 64, k = 8>, D[<f32>, <one>], A[<tf32>, <one>, <row>], B[<tf32>, <one>, <col>] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
            nvvm.wgmma.commit.group.sync.aligned
            nvvm.wgmma.wait.group.sync.aligned 1
            %c1_i32_60 = arith.constant 1 : i32
            %162 = arith.cmpi ult, %12, %c1_i32_60 : i32
            scf.if %162 {
              %c8_i32_64 = arith.constant 8 : i32
              %168 = arith.muli %arg21, %c8_i32_64 : i32
              %169 = arith.addi %168, %8 : i32
              %c32784_i32 = arith.constant 32784 : i32
              %170 = arith.addi %169, %c32784_i32 : i32
              %171 = llvm.inttoptr %170 : i32 to !llvm.ptr<3>
              %172 = nvvm.mbarrier.arrive %171 : !llvm.ptr<3> -> i64
            }
            %c1_i32_61 = arith.constant 1 : i32
            %163 = arith.addi %arg19, %c1_i32_61 : i32
            %c2_i32_62 = arith.constant 2 : i32
            %164 = arith.cmpi eq, %163, %c2_i32_62 : i32
            %c0_i32_63 = arith.constant 0 : i32
            %165 = arith.select %164, %c0_i32_63, %163 : i32
            %166 = arith.extui %164 : i1 to i32
            %167 = arith.xori %arg20, %166 : i32
            scf.yield %165, %167, %arg19, %161 : i32, i32, i32, !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
          }
          nvvm.wgmma.wait.group.sync.aligned 0
          %c1_i32_26 = arith.constant 1 : i32
          %52 = arith.cmpi ult, %12, %c1_i32_26 : i32
          scf.if %52 {
            %c8_i32_41 = arith.constant 8 : i32
            %133 = arith.muli %51#2, %c8_i32_41 : i32
            %134 = arith.addi %133, %8 : i32
            %c32784_i32 = arith.constant 32784 : i32
            %135 = arith.addi %134, %c32784_i32 : i32
            %136 = llvm.inttoptr %135 : i32 to !llvm.ptr<3>
            %137 = nvvm.mbarrier.arrive %136 : !llvm.ptr<3> -> i64
          }
          %53 = arith.index_castui %arg15 : i32 to index
          %block_id_x_27 = gpu.block_id x
          %54 = affine.apply #map1()[%53, %block_id_x_27]
          %block_id_y = gpu.block_id y
          %55 = affine.apply #map2()[%53, %block_id_y]
          %c0 = arith.constant 0 : index
          %56 = affine.apply #map(%54)
          %c5_i32_28 = arith.constant 5 : i32
          %57 = arith.shrui %12, %c5_i32_28 : i32
          %c31_i32_29 = arith.constant 31 : i32
          %58 = arith.andi %12, %c31_i32_29 : i32
          %c64_i32 = arith.constant 64 : i32
          %59 = arith.muli %11, %c64_i32 : i32
          %c16_i32 = arith.constant 16 : i32
          %60 = arith.muli %57, %c16_i32 : i32
          %61 = arith.addi %59, %60 : i32
          %c2_i32_30 = arith.constant 2 : i32
          %62 = arith.shrui %58, %c2_i32_30 : i32
          %63 = arith.addi %61, %62 : i32
          %64 = arith.index_cast %63 : i32 to index
          %65 = arith.addi %c0, %64 : index
          %c3_i32 = arith.constant 3 : i32
          %66 = arith.andi %58, %c3_i32 : i32
          %c2_i32_31 = arith.constant 2 : i32
          %67 = arith.muli %66, %c2_i32_31 : i32
          %68 = arith.index_cast %67 : i32 to index
          %69 = arith.addi %56, %68 : index
          %70 = llvm.extractvalue %51#3[0] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %71 = llvm.extractvalue %51#3[1] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %72 = vector.from_elements %70, %71 : vector<2xf32>
          vector.store %72, %arg2[%65, %69] : memref<64x128xf32>, vector<2xf32>
          %73 = llvm.extractvalue %51#3[4] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %74 = llvm.extractvalue %51#3[5] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %75 = vector.from_elements %73, %74 : vector<2xf32>
          %c8 = arith.constant 8 : index
          %76 = arith.addi %69, %c8 : index
          vector.store %75, %arg2[%65, %76] : memref<64x128xf32>, vector<2xf32>
          %77 = llvm.extractvalue %51#3[8] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %78 = llvm.extractvalue %51#3[9] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %79 = vector.from_elements %77, %78 : vector<2xf32>
          %c16 = arith.constant 16 : index
          %80 = arith.addi %69, %c16 : index
          vector.store %79, %arg2[%65, %80] : memref<64x128xf32>, vector<2xf32>
          %81 = llvm.extractvalue %51#3[12] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %82 = llvm.extractvalue %51#3[13] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %83 = vector.from_elements %81, %82 : vector<2xf32>
          %c24 = arith.constant 24 : index
          %84 = arith.addi %69, %c24 : index
          vector.store %83, %arg2[%65, %84] : memref<64x128xf32>, vector<2xf32>
          %85 = llvm.extractvalue %51#3[16] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %86 = llvm.extractvalue %51#3[17] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %87 = vector.from_elements %85, %86 : vector<2xf32>
          %c32_32 = arith.constant 32 : index
          %88 = arith.addi %69, %c32_32 : index
          vector.store %87, %arg2[%65, %88] : memref<64x128xf32>, vector<2xf32>
          %89 = llvm.extractvalue %51#3[20] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %90 = llvm.extractvalue %51#3[21] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %91 = vector.from_elements %89, %90 : vector<2xf32>
          %c40 = arith.constant 40 : index
          %92 = arith.addi %69, %c40 : index
          vector.store %91, %arg2[%65, %92] : memref<64x128xf32>, vector<2xf32>
          %93 = llvm.extractvalue %51#3[24] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %94 = llvm.extractvalue %51#3[25] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %95 = vector.from_elements %93, %94 : vector<2xf32>
          %c48 = arith.constant 48 : index
          %96 = arith.addi %69, %c48 : index
          vector.store %95, %arg2[%65, %96] : memref<64x128xf32>, vector<2xf32>
          %97 = llvm.extractvalue %51#3[28] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %98 = llvm.extractvalue %51#3[29] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %99 = vector.from_elements %97, %98 : vector<2xf32>
          %c56 = arith.constant 56 : index
          %100 = arith.addi %69, %c56 : index
          vector.store %99, %arg2[%65, %100] : memref<64x128xf32>, vector<2xf32>
          %c8_33 = arith.constant 8 : index
          %101 = arith.addi %65, %c8_33 : index
          %102 = llvm.extractvalue %51#3[2] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %103 = llvm.extractvalue %51#3[3] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %104 = vector.from_elements %102, %103 : vector<2xf32>
          vector.store %104, %arg2[%101, %69] : memref<64x128xf32>, vector<2xf32>
          %105 = llvm.extractvalue %51#3[6] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %106 = llvm.extractvalue %51#3[7] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %107 = vector.from_elements %105, %106 : vector<2xf32>
          %c8_34 = arith.constant 8 : index
          %108 = arith.addi %69, %c8_34 : index
          vector.store %107, %arg2[%101, %108] : memref<64x128xf32>, vector<2xf32>
          %109 = llvm.extractvalue %51#3[10] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %110 = llvm.extractvalue %51#3[11] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %111 = vector.from_elements %109, %110 : vector<2xf32>
          %c16_35 = arith.constant 16 : index
          %112 = arith.addi %69, %c16_35 : index
          vector.store %111, %arg2[%101, %112] : memref<64x128xf32>, vector<2xf32>
          %113 = llvm.extractvalue %51#3[14] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %114 = llvm.extractvalue %51#3[15] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %115 = vector.from_elements %113, %114 : vector<2xf32>
          %c24_36 = arith.constant 24 : index
          %116 = arith.addi %69, %c24_36 : index
          vector.store %115, %arg2[%101, %116] : memref<64x128xf32>, vector<2xf32>
          %117 = llvm.extractvalue %51#3[18] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %118 = llvm.extractvalue %51#3[19] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %119 = vector.from_elements %117, %118 : vector<2xf32>
          %c32_37 = arith.constant 32 : index
          %120 = arith.addi %69, %c32_37 : index
          vector.store %119, %arg2[%101, %120] : memref<64x128xf32>, vector<2xf32>
          %121 = llvm.extractvalue %51#3[22] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %122 = llvm.extractvalue %51#3[23] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %123 = vector.from_elements %121, %122 : vector<2xf32>
          %c40_38 = arith.constant 40 : index
          %124 = arith.addi %69, %c40_38 : index
          vector.store %123, %arg2[%101, %124] : memref<64x128xf32>, vector<2xf32>
          %125 = llvm.extractvalue %51#3[26] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %126 = llvm.extractvalue %51#3[27] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %127 = vector.from_elements %125, %126 : vector<2xf32>
          %c48_39 = arith.constant 48 : index
          %128 = arith.addi %69, %c48_39 : index
          vector.store %127, %arg2[%101, %128] : memref<64x128xf32>, vector<2xf32>
          %129 = llvm.extractvalue %51#3[30] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %130 = llvm.extractvalue %51#3[31] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %131 = vector.from_elements %129, %130 : vector<2xf32>
          %c56_40 = arith.constant 56 : index
          %132 = arith.addi %69, %c56_40 : index
          vector.store %131, %arg2[%101, %132] : memref<64x128xf32>, vector<2xf32>
          scf.yield %51#0, %51#1 : i32, i32
        }
      } else {
        %c4_i32_7 = arith.constant 4 : i32
        %11 = arith.cmpi eq, %7, %c4_i32_7 : i32
        scf.if %11 {
          %12 = nvvm.elect.sync -> i1
          scf.if %12 {
            %c0_i32_8 = arith.constant 0 : i32
            %c1_i32 = arith.constant 1 : i32
            %block_id_x = gpu.block_id x
            %13 = arith.index_cast %block_id_x : index to i32
            %c1_i32_9 = arith.constant 1 : i32
            %14 = arith.divui %13, %c1_i32_9 : i32
            %c2_i32 = arith.constant 2 : i32
            %c1_i32_10 = arith.constant 1 : i32
            %15:2 = scf.for %arg15 = %14 to %c2_i32 step %c1_i32_10 iter_args(%arg16 = %c0_i32_8, %arg17 = %c1_i32) -> (i32, i32)  : i32 {
              %16 = arith.index_castui %arg15 : i32 to index
              %block_id_x_11 = gpu.block_id x
              %17 = affine.apply #map1()[%16, %block_id_x_11]
              %block_id_y = gpu.block_id y
              %18 = affine.apply #map2()[%16, %block_id_y]
              %c0 = arith.constant 0 : index
              %19 = affine.apply #map(%17)
              %20 = arith.index_cast %c0 : index to i32
              %21 = arith.index_cast %19 : index to i32
              %c0_i32_12 = arith.constant 0 : i32
              %c1_i32_13 = arith.constant 1 : i32
              %c1_i32_14 = arith.constant 1 : i32
              %22:2 = scf.for %arg18 = %c0_i32_12 to %c1_i32_13 step %c1_i32_14 iter_args(%arg19 = %arg16, %arg20 = %arg17) -> (i32, i32)  : i32 {
                %c8_i32 = arith.constant 8 : i32
                %23 = arith.muli %arg19, %c8_i32 : i32
                %24 = arith.addi %23, %8 : i32
                %c32768_i32 = arith.constant 32768 : i32
                %25 = arith.addi %24, %c32768_i32 : i32
                %26 = llvm.inttoptr %25 : i32 to !llvm.ptr<3>
                %c8_i32_15 = arith.constant 8 : i32
                %27 = arith.muli %arg19, %c8_i32_15 : i32
                %28 = arith.addi %27, %8 : i32
                %c32784_i32 = arith.constant 32784 : i32
                %29 = arith.addi %28, %c32784_i32 : i32
                %30 = llvm.inttoptr %29 : i32 to !llvm.ptr<3>
                %c10000000_i32 = arith.constant 10000000 : i32
                nvvm.mbarrier.try_wait.parity %30, %arg20, %c10000000_i32 : !llvm.ptr<3>, i32, i32
                %c16384_i32 = arith.constant 16384 : i32
                nvvm.mbarrier.arrive.expect_tx %26, %c16384_i32 : !llvm.ptr<3>, i32
                %c32_i32 = arith.constant 32 : i32
                %31 = arith.muli %arg18, %c32_i32 : i32
                %c16384_i32_16 = arith.constant 16384 : i32
                %32 = arith.muli %arg19, %c16384_i32_16 : i32
                %33 = arith.addi %32, %8 : i32
                %34 = llvm.inttoptr %33 : i32 to !llvm.ptr<3>
                %35 = llvm.addrspacecast %34 : !llvm.ptr<3> to !llvm.ptr<7>
                nvvm.cp.async.bulk.tensor.shared.cluster.global %35, %1, %26, box[%31, %20] : !llvm.ptr<7>, !llvm.ptr
                %c16384_i32_17 = arith.constant 16384 : i32
                %36 = arith.muli %arg19, %c16384_i32_17 : i32
                %37 = arith.addi %36, %8 : i32
                %c8192_i32 = arith.constant 8192 : i32
                %38 = arith.addi %37, %c8192_i32 : i32
                %39 = llvm.inttoptr %38 : i32 to !llvm.ptr<3>
                %40 = llvm.addrspacecast %39 : !llvm.ptr<3> to !llvm.ptr<7>
                nvvm.cp.async.bulk.tensor.shared.cluster.global %40, %3, %26, box[%31, %21] : !llvm.ptr<7>, !llvm.ptr
                %c1_i32_18 = arith.constant 1 : i32
                %41 = arith.addi %arg19, %c1_i32_18 : i32
                %c2_i32_19 = arith.constant 2 : i32
                %42 = arith.cmpi eq, %41, %c2_i32_19 : i32
                %c0_i32_20 = arith.constant 0 : i32
                %43 = arith.select %42, %c0_i32_20, %41 : i32
                %44 = arith.extui %42 : i1 to i32
                %45 = arith.xori %arg20, %44 : i32
                scf.yield %43, %45 : i32, i32
              }
              scf.yield %22#0, %22#1 : i32, i32
            }
          }
        }
      }
      gpu.terminator
    } {tuner.tile_grid = array<i32: 2, 1>}
    return
  }
}
