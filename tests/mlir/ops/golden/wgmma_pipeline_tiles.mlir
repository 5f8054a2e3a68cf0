#map = affine_map<(d0) -> (d0 * 64)>
#map1 = affine_map<()[s0, s1] -> (s0 mod 2)>
#map2 = affine_map<()[s0, s1] -> (s0 floordiv 2)>
#map3 = affine_map<()[s0] -> (s0)>
#map4 = affine_map<()[s0] -> (s0 + 8)>
#map5 = affine_map<()[s0] -> (s0 + 16)>
#map6 = affine_map<()[s0] -> (s0 + 24)>
#map7 = affine_map<()[s0] -> (s0 + 32)>
#map8 = affine_map<()[s0] -> (s0 + 40)>
#map9 = affine_map<()[s0] -> (s0 + 48)>
#map10 = affine_map<()[s0] -> (s0 + 56)>
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
      %c0_i32_5 = arith.constant 0 : i32
      %9 = arith.cmpi eq, %5, %c0_i32_5 : i32
      scf.if %9 {
        %c0_i32_6 = arith.constant 0 : i32
        %c8_i32 = arith.constant 8 : i32
        %11 = arith.muli %c0_i32_6, %c8_i32 : i32
        %12 = arith.addi %11, %8 : i32
        %c32768_i32 = arith.constant 32768 : i32
        %13 = arith.addi %12, %c32768_i32 : i32
        %14 = llvm.inttoptr %13 : i32 to !llvm.ptr<3>
        %c1_i32 = arith.constant 1 : i32
        nvvm.mbarrier.init %14, %c1_i32 : !llvm.ptr<3>, i32
        %c0_i32_7 = arith.constant 0 : i32
        %c8_i32_8 = arith.constant 8 : i32
        %15 = arith.muli %c0_i32_7, %c8_i32_8 : i32
        %16 = arith.addi %15, %8 : i32
        %c32784_i32 = arith.constant 32784 : i32
        %17 = arith.addi %16, %c32784_i32 : i32
        %18 = llvm.inttoptr %17 : i32 to !llvm.ptr<3>
        %c1_i32_9 = arith.constant 1 : i32
        nvvm.mbarrier.init %18, %c1_i32_9 : !llvm.ptr<3>, i32
        %c1_i32_10 = arith.constant 1 : i32
        %c8_i32_11 = arith.constant 8 : i32
        %19 = arith.muli %c1_i32_10, %c8_i32_11 : i32
        %20 = arith.addi %19, %8 : i32
        %c32768_i32_12 = arith.constant 32768 : i32
        %21 = arith.addi %20, %c32768_i32_12 : i32
        %22 = llvm.inttoptr %21 : i32 to !llvm.ptr<3>
        %c1_i32_13 = arith.constant 1 : i32
        nvvm.mbarrier.init %22, %c1_i32_13 : !llvm.ptr<3>, i32
        %c1_i32_14 = arith.constant 1 : i32
        %c8_i32_15 = arith.constant 8 : i32
        %23 = arith.muli %c1_i32_14, %c8_i32_15 : i32
        %24 = arith.addi %23, %8 : i32
        %c32784_i32_16 = arith.constant 32784 : i32
        %25 = arith.addi %24, %c32784_i32_16 : i32
        %26 = llvm.inttoptr %25 : i32 to !llvm.ptr<3>
        %c1_i32_17 = arith.constant 1 : i32
        nvvm.mbarrier.init %26, %c1_i32_17 : !llvm.ptr<3>, i32
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
        %c0_i32_6 = arith.constant 0 : i32
        %c0_i32_7 = arith.constant 0 : i32
        %block_id_x = gpu.block_id x
        %13 = arith.index_cast %block_id_x : index to i32
        %c1_i32 = arith.constant 1 : i32
        %14 = arith.divui %13, %c1_i32 : i32
        %c2_i32_8 = arith.constant 2 : i32
        %c1_i32_9 = arith.constant 1 : i32
        %15:2 = scf.for %arg15 = %14 to %c2_i32_8 step %c1_i32_9 iter_args(%arg16 = %c0_i32_6, %arg17 = %c0_i32_7) -> (i32, i32)  : i32 {
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
          %c4_i32_10 = arith.constant 4 : i32
          %25 = arith.shrui %24, %c4_i32_10 : i32
          %c16383_i32 = arith.constant 16383 : i32
          %26 = arith.andi %25, %c16383_i32 : i32
          %27 = arith.extui %26 : i32 to i64
          %c4611686293305360384_i64 = arith.constant 4611686293305360384 : i64
          %28 = arith.ori %27, %c4611686293305360384_i64 : i64
          %c16384_i32_11 = arith.constant 16384 : i32
          %29 = arith.muli %arg16, %c16384_i32_11 : i32
          %30 = arith.addi %29, %8 : i32
          %c8192_i32_12 = arith.constant 8192 : i32
          %31 = arith.addi %30, %c8192_i32_12 : i32
          %c4_i32_13 = arith.constant 4 : i32
          %32 = arith.shrui %31, %c4_i32_13 : i32
          %c16383_i32_14 = arith.constant 16383 : i32
          %33 = arith.andi %32, %c16383_i32_14 : i32
          %34 = arith.extui %33 : i32 to i64
          %c4611686293305360384_i64_15 = arith.constant 4611686293305360384 : i64
          %35 = arith.ori %34, %c4611686293305360384_i64_15 : i64
          nvvm.wgmma.fence.aligned
          %36 = nvvm.wgmma.mma_async %28, %35, %16, <m = 64, n = 64, k = 8>, D[<f32>, <zero>], A[<tf32>, <one>, <row>], B[<tf32>, <one>, <col>] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
          %c2_i64 = arith.constant 2 : i64
          %37 = arith.addi %28, %c2_i64 : i64
          %c2_i64_16 = arith.constant 2 : i64
          %38 = arith.addi %35, %c2_i64_16 : i64
          %39 = nvvm.wgmma.mma_async %37, %38, %36, <m = 64, n = 64, k = 8>, D[<f32>, <one>], A[<tf32>, <one>, <row>], B[<tf32>, <one>, <col>] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
          %c4_i64 = arith.constant 4 : i64
          %40 = arith.addi %28, %c4_i64 : i64
          %c4_i64_17 = arith.constant 4 : i64
          %41 = arith.addi %35, %c4_i64_17 : i64
          %42 = nvvm.wgmma.mma_async %40, %41, %39, <m = 64, n = 64, k = 8>, D[<f32>, <one>], A[<tf32>, <one>, <row>], B[<tf32>, <one>, <col>] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
          %c6_i64 = arith.constant 6 : i64
          %43 = arith.addi %28, %c6_i64 : i64
          %c6_i64_18 = arith.constant 6 : i64
          %44 = arith.addi %35, %c6_i64_18 : i64
          %45 = nvvm.wgmma.mma_async %43, %44, %42, <m = 64, n = 64, k = 8>, D[<f32>, <one>], A[<tf32>, <one>, <row>], B[<tf32>, <one>, <col>] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
          nvvm.wgmma.commit.group.sync.aligned
          %c1_i32_19 = arith.constant 1 : i32
          %46 = arith.addi %arg16, %c1_i32_19 : i32
          %c2_i32_20 = arith.constant 2 : i32
          %47 = arith.cmpi eq, %46, %c2_i32_20 : i32
          %c0_i32_21 = arith.constant 0 : i32
          %48 = arith.select %47, %c0_i32_21, %46 : i32
          %49 = arith.extui %47 : i1 to i32
          %50 = arith.xori %arg17, %49 : i32
          %c1_i32_22 = arith.constant 1 : i32
          %c1_i32_23 = arith.constant 1 : i32
          %c1_i32_24 = arith.constant 1 : i32
          %51:4 = scf.for %arg18 = %c1_i32_22 to %c1_i32_23 step %c1_i32_24 iter_args(%arg19 = %48, %arg20 = %50, %arg21 = %arg16, %arg22 = %45) -> (i32, i32, i32, !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>)  : i32 {
            %c8_i32_31 = arith.constant 8 : i32
            %168 = arith.muli %arg19, %c8_i32_31 : i32
            %169 = arith.addi %168, %8 : i32
            %c32768_i32_32 = arith.constant 32768 : i32
            %170 = arith.addi %169, %c32768_i32_32 : i32
            %171 = llvm.inttoptr %170 : i32 to !llvm.ptr<3>
            %c10000000_i32_33 = arith.constant 10000000 : i32
            nvvm.mbarrier.try_wait.parity %171, %arg20, %c10000000_i32_33 : !llvm.ptr<3>, i32, i32
            %c8192_i32_34 = arith.constant 8192 : i32
            %172 = arith.muli %11, %c8192_i32_34 : i32
            %c16384_i32_35 = arith.constant 16384 : i32
            %173 = arith.muli %arg19, %c16384_i32_35 : i32
            %174 = arith.addi %173, %8 : i32
            %175 = arith.addi %174, %172 : i32
            %c4_i32_36 = arith.constant 4 : i32
            %176 = arith.shrui %175, %c4_i32_36 : i32
            %c16383_i32_37 = arith.constant 16383 : i32
            %177 = arith.andi %176, %c16383_i32_37 : i32
            %178 = arith.extui %177 : i32 to i64
            %c4611686293305360384_i64_38 = arith.constant 4611686293305360384 : i64
            %179 = arith.ori %178, %c4611686293305360384_i64_38 : i64
            %c16384_i32_39 = arith.constant 16384 : i32
            %180 = arith.muli %arg19, %c16384_i32_39 : i32
            %181 = arith.addi %180, %8 : i32
            %c8192_i32_40 = arith.constant 8192 : i32
            %182 = arith.addi %181, %c8192_i32_40 : i32
            %c4_i32_41 = arith.constant 4 : i32
            %183 = arith.shrui %182, %c4_i32_41 : i32
            %c16383_i32_42 = arith.constant 16383 : i32
            %184 = arith.andi %183, %c16383_i32_42 : i32
            %185 = arith.extui %184 : i32 to i64
            %c4611686293305360384_i64_43 = arith.constant 4611686293305360384 : i64
            %186 = arith.ori %185, %c4611686293305360384_i64_43 : i64
            nvvm.wgmma.fence.aligned
            %187 = nvvm.wgmma.mma_async %179, %186, %arg22, <m = 64, n = 64, k = 8>, D[<f32>, <one>], A[<tf32>, <one>, <row>], B[<tf32>, <one>, <col>] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
            %c2_i64_44 = arith.constant 2 : i64
            %188 = arith.addi %179, %c2_i64_44 : i64
            %c2_i64_45 = arith.constant 2 : i64
            %189 = arith.addi %186, %c2_i64_45 : i64
            %190 = nvvm.wgmma.mma_async %188, %189, %187, <m = 64, n = 64, k = 8>, D[<f32>, <one>], A[<tf32>, <one>, <row>], B[<tf32>, <one>, <col>] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
            %c4_i64_46 = arith.constant 4 : i64
            %191 = arith.addi %179, %c4_i64_46 : i64
            %c4_i64_47 = arith.constant 4 : i64
            %192 = arith.addi %186, %c4_i64_47 : i64
            %193 = nvvm.wgmma.mma_async %191, %192, %190, <m = 64, n = 64, k = 8>, D[<f32>, <one>], A[<tf32>, <one>, <row>], B[<tf32>, <one>, <col>] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
            %c6_i64_48 = arith.constant 6 : i64
            %194 = arith.addi %179, %c6_i64_48 : i64
            %c6_i64_49 = arith.constant 6 : i64
            %195 = arith.addi %186, %c6_i64_49 : i64
            %196 = nvvm.wgmma.mma_async %194, %195, %193, <m = 64, n = 64, k = 8>, D[<f32>, <one>], A[<tf32>, <one>, <row>], B[<tf32>, <one>, <col>] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
            nvvm.wgmma.commit.group.sync.aligned
            nvvm.wgmma.wait.group.sync.aligned 1
            %c1_i32_50 = arith.constant 1 : i32
            %197 = arith.cmpi ult, %12, %c1_i32_50 : i32
            scf.if %197 {
              %c8_i32_54 = arith.constant 8 : i32
              %203 = arith.muli %arg21, %c8_i32_54 : i32
              %204 = arith.addi %203, %8 : i32
              %c32784_i32 = arith.constant 32784 : i32
              %205 = arith.addi %204, %c32784_i32 : i32
              %206 = llvm.inttoptr %205 : i32 to !llvm.ptr<3>
              %207 = nvvm.mbarrier.arrive %206 : !llvm.ptr<3> -> i64
            }
            %c1_i32_51 = arith.constant 1 : i32
            %198 = arith.addi %arg19, %c1_i32_51 : i32
            %c2_i32_52 = arith.constant 2 : i32
            %199 = arith.cmpi eq, %198, %c2_i32_52 : i32
            %c0_i32_53 = arith.constant 0 : i32
            %200 = arith.select %199, %c0_i32_53, %198 : i32
            %201 = arith.extui %199 : i1 to i32
            %202 = arith.xori %arg20, %201 : i32
            scf.yield %200, %202, %arg19, %196 : i32, i32, i32, !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
          }
          %52 = llvm.extractvalue %51#3[0] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %53 = llvm.extractvalue %51#3[1] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %54 = llvm.extractvalue %51#3[2] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %55 = llvm.extractvalue %51#3[3] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %56 = llvm.extractvalue %51#3[4] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %57 = llvm.extractvalue %51#3[5] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %58 = llvm.extractvalue %51#3[6] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %59 = llvm.extractvalue %51#3[7] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %60 = llvm.extractvalue %51#3[8] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %61 = llvm.extractvalue %51#3[9] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %62 = llvm.extractvalue %51#3[10] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %63 = llvm.extractvalue %51#3[11] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %64 = llvm.extractvalue %51#3[12] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %65 = llvm.extractvalue %51#3[13] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %66 = llvm.extractvalue %51#3[14] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %67 = llvm.extractvalue %51#3[15] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %68 = llvm.extractvalue %51#3[16] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %69 = llvm.extractvalue %51#3[17] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %70 = llvm.extractvalue %51#3[18] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %71 = llvm.extractvalue %51#3[19] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %72 = llvm.extractvalue %51#3[20] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %73 = llvm.extractvalue %51#3[21] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %74 = llvm.extractvalue %51#3[22] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %75 = llvm.extractvalue %51#3[23] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %76 = llvm.extractvalue %51#3[24] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %77 = llvm.extractvalue %51#3[25] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %78 = llvm.extractvalue %51#3[26] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %79 = llvm.extractvalue %51#3[27] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %80 = llvm.extractvalue %51#3[28] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %81 = llvm.extractvalue %51#3[29] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %82 = llvm.extractvalue %51#3[30] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %83 = llvm.extractvalue %51#3[31] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %84 = llvm.inline_asm has_side_effects asm_dialect = att "wgmma.wait_group.sync.aligned 0;", "=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,=f,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31" %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83 : (f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32) -> !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
          %c1_i32_25 = arith.constant 1 : i32
          %85 = arith.cmpi ult, %12, %c1_i32_25 : i32
          scf.if %85 {
            %c8_i32_31 = arith.constant 8 : i32
            %168 = arith.muli %51#2, %c8_i32_31 : i32
            %169 = arith.addi %168, %8 : i32
            %c32784_i32 = arith.constant 32784 : i32
            %170 = arith.addi %169, %c32784_i32 : i32
            %171 = llvm.inttoptr %170 : i32 to !llvm.ptr<3>
            %172 = nvvm.mbarrier.arrive %171 : !llvm.ptr<3> -> i64
          }
          %86 = arith.index_castui %arg15 : i32 to index
          %block_id_x_26 = gpu.block_id x
          %87 = affine.apply #map1()[%86, %block_id_x_26]
          %block_id_y = gpu.block_id y
          %88 = affine.apply #map2()[%86, %block_id_y]
          %c0 = arith.constant 0 : index
          %89 = affine.apply #map(%87)
          %c5_i32_27 = arith.constant 5 : i32
          %90 = arith.shrui %12, %c5_i32_27 : i32
          %c31_i32_28 = arith.constant 31 : i32
          %91 = arith.andi %12, %c31_i32_28 : i32
          %c64_i32 = arith.constant 64 : i32
          %92 = arith.muli %11, %c64_i32 : i32
          %c16_i32 = arith.constant 16 : i32
          %93 = arith.muli %90, %c16_i32 : i32
          %94 = arith.addi %92, %93 : i32
          %c2_i32_29 = arith.constant 2 : i32
          %95 = arith.shrui %91, %c2_i32_29 : i32
          %96 = arith.addi %94, %95 : i32
          %97 = arith.index_cast %96 : i32 to index
          %98 = arith.addi %c0, %97 : index
          %c3_i32 = arith.constant 3 : i32
          %99 = arith.andi %91, %c3_i32 : i32
          %c2_i32_30 = arith.constant 2 : i32
          %100 = arith.muli %99, %c2_i32_30 : i32
          %101 = arith.index_cast %100 : i32 to index
          %102 = arith.addi %89, %101 : index
          %103 = llvm.extractvalue %84[0] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %104 = llvm.extractvalue %84[1] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %105 = vector.from_elements %103, %104 : vector<2xf32>
          %106 = affine.apply #map3()[%102]
          vector.store %105, %arg2[%98, %106] : memref<64x128xf32>, vector<2xf32>
          %107 = llvm.extractvalue %84[4] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %108 = llvm.extractvalue %84[5] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %109 = vector.from_elements %107, %108 : vector<2xf32>
          %110 = affine.apply #map4()[%102]
          vector.store %109, %arg2[%98, %110] : memref<64x128xf32>, vector<2xf32>
          %111 = llvm.extractvalue %84[8] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %112 = llvm.extractvalue %84[9] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %113 = vector.from_elements %111, %112 : vector<2xf32>
          %114 = affine.apply #map5()[%102]
          vector.store %113, %arg2[%98, %114] : memref<64x128xf32>, vector<2xf32>
          %115 = llvm.extractvalue %84[12] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %116 = llvm.extractvalue %84[13] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %117 = vector.from_elements %115, %116 : vector<2xf32>
          %118 = affine.apply #map6()[%102]
          vector.store %117, %arg2[%98, %118] : memref<64x128xf32>, vector<2xf32>
          %119 = llvm.extractvalue %84[16] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %120 = llvm.extractvalue %84[17] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %121 = vector.from_elements %119, %120 : vector<2xf32>
          %122 = affine.apply #map7()[%102]
          vector.store %121, %arg2[%98, %122] : memref<64x128xf32>, vector<2xf32>
          %123 = llvm.extractvalue %84[20] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %124 = llvm.extractvalue %84[21] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %125 = vector.from_elements %123, %124 : vector<2xf32>
          %126 = affine.apply #map8()[%102]
          vector.store %125, %arg2[%98, %126] : memref<64x128xf32>, vector<2xf32>
          %127 = llvm.extractvalue %84[24] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %128 = llvm.extractvalue %84[25] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %129 = vector.from_elements %127, %128 : vector<2xf32>
          %130 = affine.apply #map9()[%102]
          vector.store %129, %arg2[%98, %130] : memref<64x128xf32>, vector<2xf32>
          %131 = llvm.extractvalue %84[28] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %132 = llvm.extractvalue %84[29] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %133 = vector.from_elements %131, %132 : vector<2xf32>
          %134 = affine.apply #map10()[%102]
          vector.store %133, %arg2[%98, %134] : memref<64x128xf32>, vector<2xf32>
          %c8 = arith.constant 8 : index
          %135 = arith.addi %98, %c8 : index
          %136 = llvm.extractvalue %84[2] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %137 = llvm.extractvalue %84[3] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %138 = vector.from_elements %136, %137 : vector<2xf32>
          %139 = affine.apply #map3()[%102]
          vector.store %138, %arg2[%135, %139] : memref<64x128xf32>, vector<2xf32>
          %140 = llvm.extractvalue %84[6] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %141 = llvm.extractvalue %84[7] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %142 = vector.from_elements %140, %141 : vector<2xf32>
          %143 = affine.apply #map4()[%102]
          vector.store %142, %arg2[%135, %143] : memref<64x128xf32>, vector<2xf32>
          %144 = llvm.extractvalue %84[10] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %145 = llvm.extractvalue %84[11] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %146 = vector.from_elements %144, %145 : vector<2xf32>
          %147 = affine.apply #map5()[%102]
          vector.store %146, %arg2[%135, %147] : memref<64x128xf32>, vector<2xf32>
          %148 = llvm.extractvalue %84[14] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %149 = llvm.extractvalue %84[15] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %150 = vector.from_elements %148, %149 : vector<2xf32>
          %151 = affine.apply #map6()[%102]
          vector.store %150, %arg2[%135, %151] : memref<64x128xf32>, vector<2xf32>
          %152 = llvm.extractvalue %84[18] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %153 = llvm.extractvalue %84[19] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %154 = vector.from_elements %152, %153 : vector<2xf32>
          %155 = affine.apply #map7()[%102]
          vector.store %154, %arg2[%135, %155] : memref<64x128xf32>, vector<2xf32>
          %156 = llvm.extractvalue %84[22] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %157 = llvm.extractvalue %84[23] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %158 = vector.from_elements %156, %157 : vector<2xf32>
          %159 = affine.apply #map8()[%102]
          vector.store %158, %arg2[%135, %159] : memref<64x128xf32>, vector<2xf32>
          %160 = llvm.extractvalue %84[26] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %161 = llvm.extractvalue %84[27] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %162 = vector.from_elements %160, %161 : vector<2xf32>
          %163 = affine.apply #map9()[%102]
          vector.store %162, %arg2[%135, %163] : memref<64x128xf32>, vector<2xf32>
          %164 = llvm.extractvalue %84[30] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %165 = llvm.extractvalue %84[31] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
          %166 = vector.from_elements %164, %165 : vector<2xf32>
          %167 = affine.apply #map10()[%102]
          vector.store %166, %arg2[%135, %167] : memref<64x128xf32>, vector<2xf32>
          scf.yield %51#0, %51#1 : i32, i32
        }
      } else {
        %c4_i32_6 = arith.constant 4 : i32
        %11 = arith.cmpi eq, %7, %c4_i32_6 : i32
        scf.if %11 {
          %12 = nvvm.elect.sync -> i1
          scf.if %12 {
            %c0_i32_7 = arith.constant 0 : i32
            %c1_i32 = arith.constant 1 : i32
            %block_id_x = gpu.block_id x
            %13 = arith.index_cast %block_id_x : index to i32
            %c1_i32_8 = arith.constant 1 : i32
            %14 = arith.divui %13, %c1_i32_8 : i32
            %c2_i32 = arith.constant 2 : i32
            %c1_i32_9 = arith.constant 1 : i32
            %15:2 = scf.for %arg15 = %14 to %c2_i32 step %c1_i32_9 iter_args(%arg16 = %c0_i32_7, %arg17 = %c1_i32) -> (i32, i32)  : i32 {
              %16 = arith.index_castui %arg15 : i32 to index
              %block_id_x_10 = gpu.block_id x
              %17 = affine.apply #map1()[%16, %block_id_x_10]
              %block_id_y = gpu.block_id y
              %18 = affine.apply #map2()[%16, %block_id_y]
              %c0 = arith.constant 0 : index
              %19 = affine.apply #map(%17)
              %20 = arith.index_cast %c0 : index to i32
              %21 = arith.index_cast %19 : index to i32
              %c0_i32_11 = arith.constant 0 : i32
              %c1_i32_12 = arith.constant 1 : i32
              %c1_i32_13 = arith.constant 1 : i32
              %22:2 = scf.for %arg18 = %c0_i32_11 to %c1_i32_12 step %c1_i32_13 iter_args(%arg19 = %arg16, %arg20 = %arg17) -> (i32, i32)  : i32 {
                %c8_i32 = arith.constant 8 : i32
                %23 = arith.muli %arg19, %c8_i32 : i32
                %24 = arith.addi %23, %8 : i32
                %c32768_i32 = arith.constant 32768 : i32
                %25 = arith.addi %24, %c32768_i32 : i32
                %26 = llvm.inttoptr %25 : i32 to !llvm.ptr<3>
                %c8_i32_14 = arith.constant 8 : i32
                %27 = arith.muli %arg19, %c8_i32_14 : i32
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
                %c16384_i32_15 = arith.constant 16384 : i32
                %32 = arith.muli %arg19, %c16384_i32_15 : i32
                %33 = arith.addi %32, %8 : i32
                %34 = llvm.inttoptr %33 : i32 to !llvm.ptr<3>
                %35 = llvm.addrspacecast %34 : !llvm.ptr<3> to !llvm.ptr<7>
                nvvm.cp.async.bulk.tensor.shared.cluster.global %35, %1, %26, box[%31, %20] : !llvm.ptr<7>, !llvm.ptr
                %c16384_i32_16 = arith.constant 16384 : i32
                %36 = arith.muli %arg19, %c16384_i32_16 : i32
                %37 = arith.addi %36, %8 : i32
                %c8192_i32 = arith.constant 8192 : i32
                %38 = arith.addi %37, %c8192_i32 : i32
                %39 = llvm.inttoptr %38 : i32 to !llvm.ptr<3>
                %40 = llvm.addrspacecast %39 : !llvm.ptr<3> to !llvm.ptr<7>
                nvvm.cp.async.bulk.tensor.shared.cluster.global %40, %3, %26, box[%31, %21] : !llvm.ptr<7>, !llvm.ptr
                %c1_i32_17 = arith.constant 1 : i32
                %41 = arith.addi %arg19, %c1_i32_17 : i32
                %c2_i32_18 = arith.constant 2 : i32
                %42 = arith.cmpi eq, %41, %c2_i32_18 : i32
                %c0_i32_19 = arith.constant 0 : i32
                %43 = arith.select %42, %c0_i32_19, %41 : i32
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
