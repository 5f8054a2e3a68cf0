#map = affine_map<(d0) -> (d0 * 64)>
#map1 = affine_map<()[s0] -> (s0)>
#map2 = affine_map<()[s0] -> (s0 + 8)>
#map3 = affine_map<()[s0] -> (s0 + 16)>
#map4 = affine_map<()[s0] -> (s0 + 24)>
#map5 = affine_map<()[s0] -> (s0 + 32)>
#map6 = affine_map<()[s0] -> (s0 + 40)>
#map7 = affine_map<()[s0] -> (s0 + 48)>
#map8 = affine_map<()[s0] -> (s0 + 56)>
module {
  func.func @f(%arg0: memref<64x192xf16>, %arg1: memref<192x128xf16>, %arg2: memref<64x128xf32>) {
    %cst = arith.constant 0.000000e+00 : f32
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %cast = memref.cast %arg0 : memref<64x192xf16> to memref<*xf16>
    %c64 = arith.constant 64 : index
    %c64_0 = arith.constant 64 : index
    %0 = nvgpu.tma.create.descriptor %cast box[%c64, %c64_0] : memref<*xf16> -> <tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, l2promo = l2promo_256b, oob = zero, interleave = none>
    %1 = builtin.unrealized_conversion_cast %0 : !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, l2promo = l2promo_256b, oob = zero, interleave = none> to !llvm.ptr
    %cast_1 = memref.cast %arg1 : memref<192x128xf16> to memref<*xf16>
    %c64_2 = arith.constant 64 : index
    %c64_3 = arith.constant 64 : index
    %2 = nvgpu.tma.create.descriptor %cast_1 box[%c64_2, %c64_3] : memref<*xf16> -> <tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, l2promo = l2promo_256b, oob = zero, interleave = none>
    %3 = builtin.unrealized_conversion_cast %2 : !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, l2promo = l2promo_256b, oob = zero, interleave = none> to !llvm.ptr
    %c256 = arith.constant 256 : index
    gpu.launch blocks(%arg3, %arg4, %arg5) in (%arg9 = %c2, %arg10 = %c1, %arg11 = %c1) threads(%arg6, %arg7, %arg8) in (%arg12 = %c256, %arg13 = %c1, %arg14 = %c1) {
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
      %c0_i32_4 = arith.constant 0 : i32
      %9 = arith.cmpi eq, %5, %c0_i32_4 : i32
      scf.if %9 {
        %c0_i32_5 = arith.constant 0 : i32
        %c8_i32 = arith.constant 8 : i32
        %11 = arith.muli %c0_i32_5, %c8_i32 : i32
        %12 = arith.addi %11, %8 : i32
        %c32768_i32 = arith.constant 32768 : i32
        %13 = arith.addi %12, %c32768_i32 : i32
        %14 = llvm.inttoptr %13 : i32 to !llvm.ptr<3>
        %c1_i32 = arith.constant 1 : i32
        nvvm.mbarrier.init %14, %c1_i32 : !llvm.ptr<3>, i32
        %c0_i32_6 = arith.constant 0 : i32
        %c8_i32_7 = arith.constant 8 : i32
        %15 = arith.muli %c0_i32_6, %c8_i32_7 : i32
        %16 = arith.addi %15, %8 : i32
        %c32784_i32 = arith.constant 32784 : i32
        %17 = arith.addi %16, %c32784_i32 : i32
        %18 = llvm.inttoptr %17 : i32 to !llvm.ptr<3>
        %c1_i32_8 = arith.constant 1 : i32
        nvvm.mbarrier.init %18, %c1_i32_8 : !llvm.ptr<3>, i32
        %c1_i32_9 = arith.constant 1 : i32
        %c8_i32_10 = arith.constant 8 : i32
        %19 = arith.muli %c1_i32_9, %c8_i32_10 : i32
        %20 = arith.addi %19, %8 : i32
        %c32768_i32_11 = arith.constant 32768 : i32
        %21 = arith.addi %20, %c32768_i32_11 : i32
        %22 = llvm.inttoptr %21 : i32 to !llvm.ptr<3>
        %c1_i32_12 = arith.constant 1 : i32
        nvvm.mbarrier.init %22, %c1_i32_12 : !llvm.ptr<3>, i32
        %c1_i32_13 = arith.constant 1 : i32
        %c8_i32_14 = arith.constant 8 : i32
        %23 = arith.muli %c1_i32_13, %c8_i32_14 : i32
        %24 = arith.addi %23, %8 : i32
        %c32784_i32_15 = arith.constant 32784 : i32
        %25 = arith.addi %24, %c32784_i32_15 : i32
        %26 = llvm.inttoptr %25 : i32 to !llvm.ptr<3>
        %c1_i32_16 = arith.constant 1 : i32
        nvvm.mbarrier.init %26, %c1_i32_16 : !llvm.ptr<3>, i32
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
        %c0_i32_5 = arith.constant 0 : i32
        %c0_i32_6 = arith.constant 0 : i32
        %13 = llvm.mlir.undef : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
        %c8_i32 = arith.constant 8 : i32
        %14 = arith.muli %c0_i32_5, %c8_i32 : i32
        %15 = arith.addi %14, %8 : i32
        %c32768_i32 = arith.constant 32768 : i32
        %16 = arith.addi %15, %c32768_i32 : i32
        %17 = llvm.inttoptr %16 : i32 to !llvm.ptr<3>
        %c10000000_i32 = arith.constant 10000000 : i32
        nvvm.mbarrier.try_wait.parity %17, %c0_i32_6, %c10000000_i32 : !llvm.ptr<3>, i32, i32
        %c8192_i32 = arith.constant 8192 : i32
        %18 = arith.muli %11, %c8192_i32 : i32
        %c16384_i32 = arith.constant 16384 : i32
        %19 = arith.muli %c0_i32_5, %c16384_i32 : i32
        %20 = arith.addi %19, %8 : i32
        %21 = arith.addi %20, %18 : i32
        %c4_i32_7 = arith.constant 4 : i32
        %22 = arith.shrui %21, %c4_i32_7 : i32
        %c16383_i32 = arith.constant 16383 : i32
        %23 = arith.andi %22, %c16383_i32 : i32
        %24 = arith.extui %23 : i32 to i64
        %c4611686293305360384_i64 = arith.constant 4611686293305360384 : i64
        %25 = arith.ori %24, %c4611686293305360384_i64 : i64
        %c16384_i32_8 = arith.constant 16384 : i32
        %26 = arith.muli %c0_i32_5, %c16384_i32_8 : i32
        %27 = arith.addi %26, %8 : i32
        %c8192_i32_9 = arith.constant 8192 : i32
        %28 = arith.addi %27, %c8192_i32_9 : i32
        %c4_i32_10 = arith.constant 4 : i32
        %29 = arith.shrui %28, %c4_i32_10 : i32
        %c16383_i32_11 = arith.constant 16383 : i32
        %30 = arith.andi %29, %c16383_i32_11 : i32
        %31 = arith.extui %30 : i32 to i64
        %c4611686293338849280_i64 = arith.constant 4611686293338849280 : i64
        %32 = arith.ori %31, %c4611686293338849280_i64 : i64
        nvvm.wgmma.fence.aligned
        %33 = nvvm.wgmma.mma_async %25, %32, %13, <m = 64, n = 64, k = 16>, D[<f32>, <zero>], A[<f16>, <one>, <row>], B[<f16>, <one>, <row>] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
        %c2_i64 = arith.constant 2 : i64
        %34 = arith.addi %25, %c2_i64 : i64
        %c128_i64 = arith.constant 128 : i64
        %35 = arith.addi %32, %c128_i64 : i64
        %36 = nvvm.wgmma.mma_async %34, %35, %33, <m = 64, n = 64, k = 16>, D[<f32>, <one>], A[<f16>, <one>, <row>], B[<f16>, <one>, <row>] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
        %c4_i64 = arith.constant 4 : i64
        %37 = arith.addi %25, %c4_i64 : i64
        %c256_i64 = arith.constant 256 : i64
        %38 = arith.addi %32, %c256_i64 : i64
        %39 = nvvm.wgmma.mma_async %37, %38, %36, <m = 64, n = 64, k = 16>, D[<f32>, <one>], A[<f16>, <one>, <row>], B[<f16>, <one>, <row>] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
        %c6_i64 = arith.constant 6 : i64
        %40 = arith.addi %25, %c6_i64 : i64
        %c384_i64 = arith.constant 384 : i64
        %41 = arith.addi %32, %c384_i64 : i64
        %42 = nvvm.wgmma.mma_async %40, %41, %39, <m = 64, n = 64, k = 16>, D[<f32>, <one>], A[<f16>, <one>, <row>], B[<f16>, <one>, <row>] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
        nvvm.wgmma.commit.group.sync.aligned
        %c1_i32 = arith.constant 1 : i32
        %43 = arith.addi %c0_i32_5, %c1_i32 : i32
        %c2_i32_12 = arith.constant 2 : i32
        %44 = arith.cmpi eq, %43, %c2_i32_12 : i32
        %c0_i32_13 = arith.constant 0 : i32
        %45 = arith.select %44, %c0_i32_13, %43 : i32
        %46 = arith.extui %44 : i1 to i32
        %47 = arith.xori %c0_i32_6, %46 : i32
        %c1_i32_14 = arith.constant 1 : i32
        %c3_i32 = arith.constant 3 : i32
        %c1_i32_15 = arith.constant 1 : i32
        %48:4 = scf.for %arg15 = %c1_i32_14 to %c3_i32 step %c1_i32_15 iter_args(%arg16 = %45, %arg17 = %47, %arg18 = %c0_i32_5, %arg19 = %42) -> (i32, i32, i32, !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>)  : i32 {
          %c8_i32_21 = arith.constant 8 : i32
          %127 = arith.muli %arg16, %c8_i32_21 : i32
          %128 = arith.addi %127, %8 : i32
          %c32768_i32_22 = arith.constant 32768 : i32
          %129 = arith.addi %128, %c32768_i32_22 : i32
          %130 = llvm.inttoptr %129 : i32 to !llvm.ptr<3>
          %c10000000_i32_23 = arith.constant 10000000 : i32
          nvvm.mbarrier.try_wait.parity %130, %arg17, %c10000000_i32_23 : !llvm.ptr<3>, i32, i32
          %c8192_i32_24 = arith.constant 8192 : i32
          %131 = arith.muli %11, %c8192_i32_24 : i32
          %c16384_i32_25 = arith.constant 16384 : i32
          %132 = arith.muli %arg16, %c16384_i32_25 : i32
          %133 = arith.addi %132, %8 : i32
          %134 = arith.addi %133, %131 : i32
          %c4_i32_26 = arith.constant 4 : i32
          %135 = arith.shrui %134, %c4_i32_26 : i32
          %c16383_i32_27 = arith.constant 16383 : i32
          %136 = arith.andi %135, %c16383_i32_27 : i32
          %137 = arith.extui %136 : i32 to i64
          %c4611686293305360384_i64_28 = arith.constant 4611686293305360384 : i64
          %138 = arith.ori %137, %c4611686293305360384_i64_28 : i64
          %c16384_i32_29 = arith.constant 16384 : i32
          %139 = arith.muli %arg16, %c16384_i32_29 : i32
          %140 = arith.addi %139, %8 : i32
          %c8192_i32_30 = arith.constant 8192 : i32
          %141 = arith.addi %140, %c8192_i32_30 : i32
          %c4_i32_31 = arith.constant 4 : i32
          %142 = arith.shrui %141, %c4_i32_31 : i32
          %c16383_i32_32 = arith.constant 16383 : i32
          %143 = arith.andi %142, %c16383_i32_32 : i32
          %144 = arith.extui %143 : i32 to i64
          %c4611686293338849280_i64_33 = arith.constant 4611686293338849280 : i64
          %145 = arith.ori %144, %c4611686293338849280_i64_33 : i64
          nvvm.wgmma.fence.aligned
          %146 = nvvm.wgmma.mma_async %138, %145, %arg19, <m = 64, n = 64, k = 16>, D[<f32>, <one>], A[<f16>, <one>, <row>], B[<f16>, <one>, <row>] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
          %c2_i64_34 = arith.constant 2 : i64
          %147 = arith.addi %138, %c2_i64_34 : i64
          %c128_i64_35 = arith.constant 128 : i64
          %148 = arith.addi %145, %c128_i64_35 : i64
          %149 = nvvm.wgmma.mma_async %147, %148, %146, <m = 64, n = 64, k = 16>, D[<f32>, <one>], A[<f16>, <one>, <row>], B[<f16>, <one>, <row>] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
          %c4_i64_36 = arith.constant 4 : i64
          %150 = arith.addi %138, %c4_i64_36 : i64
          %c256_i64_37 = arith.constant 256 : i64
          %151 = arith.addi %145, %c256_i64_37 : i64
          %152 = nvvm.wgmma.mma_async %150, %151, %149, <m = 64, n = 64, k = 16>, D[<f32>, <one>], A[<f16>, <one>, <row>], B[<f16>, <one>, <row>] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
          %c6_i64_38 = arith.constant 6 : i64
          %153 = arith.addi %138, %c6_i64_38 : i64
          %c384_i64_39 = arith.constant 384 : i64
          %154 = arith.addi %145, %c384_i64_39 : i64
          %155 = nvvm.wgmma.mma_async %153, %154, %152, <m = 64, n = 64, k = 16>, D[<f32>, <one>], A[<f16>, <one>, <row>], B[<f16>, <one>, <row>] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
          nvvm.wgmma.commit.group.sync.aligned
          nvvm.wgmma.wait.group.sync.aligned 1
          %c1_i32_40 = arith.constant 1 : i32
          %156 = arith.cmpi ult, %12, %c1_i32_40 : i32
          scf.if %156 {
            %c8_i32_44 = arith.constant 8 : i32
            %162 = arith.muli %arg18, %c8_i32_44 : i32
            %163 = arith.addi %162, %8 : i32
            %c32784_i32 = arith.constant 32784 : i32
            %164 = arith.addi %163, %c32784_i32 : i32
            %165 = llvm.inttoptr %164 : i32 to !llvm.ptr<3>
            %166 = nvvm.mbarrier.arrive %165 : !llvm.ptr<3> -> i64
          }
          %c1_i32_41 = arith.constant 1 : i32
          %157 = arith.addi %arg16, %c1_i32_41 : i32
          %c2_i32_42 = arith.constant 2 : i32
          %158 = arith.cmpi eq, %157, %c2_i32_42 : i32
          %c0_i32_43 = arith.constant 0 : i32
          %159 = arith.select %158, %c0_i32_43, %157 : i32
          %160 = arith.extui %158 : i1 to i32
          %161 = arith.xori %arg17, %160 : i32
          scf.yield %159, %161, %arg16, %155 : i32, i32, i32, !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)>
        }
        nvvm.wgmma.wait.group.sync.aligned 0
        %c0 = arith.constant 0 : index
        %c5_i32_16 = arith.constant 5 : i32
        %49 = arith.shrui %12, %c5_i32_16 : i32
        %c31_i32_17 = arith.constant 31 : i32
        %50 = arith.andi %12, %c31_i32_17 : i32
        %c64_i32 = arith.constant 64 : i32
        %51 = arith.muli %11, %c64_i32 : i32
        %c16_i32 = arith.constant 16 : i32
        %52 = arith.muli %49, %c16_i32 : i32
        %53 = arith.addi %51, %52 : i32
        %c2_i32_18 = arith.constant 2 : i32
        %54 = arith.shrui %50, %c2_i32_18 : i32
        %55 = arith.addi %53, %54 : i32
        %56 = arith.index_cast %55 : i32 to index
        %57 = arith.addi %c0, %56 : index
        %c3_i32_19 = arith.constant 3 : i32
        %58 = arith.andi %50, %c3_i32_19 : i32
        %c2_i32_20 = arith.constant 2 : i32
        %59 = arith.muli %58, %c2_i32_20 : i32
        %60 = arith.index_cast %59 : i32 to index
        %61 = arith.addi %4, %60 : index
        %62 = llvm.extractvalue %48#3[0] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %63 = llvm.extractvalue %48#3[1] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %64 = vector.from_elements %62, %63 : vector<2xf32>
        %65 = affine.apply #map1()[%61]
        vector.store %64, %arg2[%57, %65] : memref<64x128xf32>, vector<2xf32>
        %66 = llvm.extractvalue %48#3[4] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %67 = llvm.extractvalue %48#3[5] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %68 = vector.from_elements %66, %67 : vector<2xf32>
        %69 = affine.apply #map2()[%61]
        vector.store %68, %arg2[%57, %69] : memref<64x128xf32>, vector<2xf32>
        %70 = llvm.extractvalue %48#3[8] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %71 = llvm.extractvalue %48#3[9] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %72 = vector.from_elements %70, %71 : vector<2xf32>
        %73 = affine.apply #map3()[%61]
        vector.store %72, %arg2[%57, %73] : memref<64x128xf32>, vector<2xf32>
        %74 = llvm.extractvalue %48#3[12] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %75 = llvm.extractvalue %48#3[13] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %76 = vector.from_elements %74, %75 : vector<2xf32>
        %77 = affine.apply #map4()[%61]
        vector.store %76, %arg2[%57, %77] : memref<64x128xf32>, vector<2xf32>
        %78 = llvm.extractvalue %48#3[16] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %79 = llvm.extractvalue %48#3[17] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %80 = vector.from_elements %78, %79 : vector<2xf32>
        %81 = affine.apply #map5()[%61]
        vector.store %80, %arg2[%57, %81] : memref<64x128xf32>, vector<2xf32>
        %82 = llvm.extractvalue %48#3[20] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %83 = llvm.extractvalue %48#3[21] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %84 = vector.from_elements %82, %83 : vector<2xf32>
        %85 = affine.apply #map6()[%61]
        vector.store %84, %arg2[%57, %85] : memref<64x128xf32>, vector<2xf32>
        %86 = llvm.extractvalue %48#3[24] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %87 = llvm.extractvalue %48#3[25] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %88 = vector.from_elements %86, %87 : vector<2xf32>
        %89 = affine.apply #map7()[%61]
        vector.store %88, %arg2[%57, %89] : memref<64x128xf32>, vector<2xf32>
        %90 = llvm.extractvalue %48#3[28] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %91 = llvm.extractvalue %48#3[29] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %92 = vector.from_elements %90, %91 : vector<2xf32>
        %93 = affine.apply #map8()[%61]
        vector.store %92, %arg2[%57, %93] : memref<64x128xf32>, vector<2xf32>
        %c8 = arith.constant 8 : index
        %94 = arith.addi %57, %c8 : index
        %95 = llvm.extractvalue %48#3[2] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %96 = llvm.extractvalue %48#3[3] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %97 = vector.from_elements %95, %96 : vector<2xf32>
        %98 = affine.apply #map1()[%61]
        vector.store %97, %arg2[%94, %98] : memref<64x128xf32>, vector<2xf32>
        %99 = llvm.extractvalue %48#3[6] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %100 = llvm.extractvalue %48#3[7] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %101 = vector.from_elements %99, %100 : vector<2xf32>
        %102 = affine.apply #map2()[%61]
        vector.store %101, %arg2[%94, %102] : memref<64x128xf32>, vector<2xf32>
        %103 = llvm.extractvalue %48#3[10] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %104 = llvm.extractvalue %48#3[11] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %105 = vector.from_elements %103, %104 : vector<2xf32>
        %106 = affine.apply #map3()[%61]
        vector.store %105, %arg2[%94, %106] : memref<64x128xf32>, vector<2xf32>
        %107 = llvm.extractvalue %48#3[14] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %108 = llvm.extractvalue %48#3[15] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %109 = vector.from_elements %107, %108 : vector<2xf32>
        %110 = affine.apply #map4()[%61]
        vector.store %109, %arg2[%94, %110] : memref<64x128xf32>, vector<2xf32>
        %111 = llvm.extractvalue %48#3[18] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %112 = llvm.extractvalue %48#3[19] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %113 = vector.from_elements %111, %112 : vector<2xf32>
        %114 = affine.apply #map5()[%61]
        vector.store %113, %arg2[%94, %114] : memref<64x128xf32>, vector<2xf32>
        %115 = llvm.extractvalue %48#3[22] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %116 = llvm.extractvalue %48#3[23] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %117 = vector.from_elements %115, %116 : vector<2xf32>
        %118 = affine.apply #map6()[%61]
        vector.store %117, %arg2[%94, %118] : memref<64x128xf32>, vector<2xf32>
        %119 = llvm.extractvalue %48#3[26] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %120 = llvm.extractvalue %48#3[27] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %121 = vector.from_elements %119, %120 : vector<2xf32>
        %122 = affine.apply #map7()[%61]
        vector.store %121, %arg2[%94, %122] : memref<64x128xf32>, vector<2xf32>
        %123 = llvm.extractvalue %48#3[30] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %124 = llvm.extractvalue %48#3[31] : !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)> 
        %125 = vector.from_elements %123, %124 : vector<2xf32>
        %126 = affine.apply #map8()[%61]
        vector.store %125, %arg2[%94, %126] : memref<64x128xf32>, vector<2xf32>
      } else {
        %c4_i32_5 = arith.constant 4 : i32
        %11 = arith.cmpi eq, %7, %c4_i32_5 : i32
        scf.if %11 {
          %12 = nvvm.elect.sync -> i1
          scf.if %12 {
            %c0_i32_6 = arith.constant 0 : i32
            %c1_i32 = arith.constant 1 : i32
            %c0 = arith.constant 0 : index
            %13 = arith.index_cast %c0 : index to i32
            %14 = arith.index_cast %4 : index to i32
            %c0_i32_7 = arith.constant 0 : i32
            %c3_i32 = arith.constant 3 : i32
            %c1_i32_8 = arith.constant 1 : i32
            %15:2 = scf.for %arg15 = %c0_i32_7 to %c3_i32 step %c1_i32_8 iter_args(%arg16 = %c0_i32_6, %arg17 = %c1_i32) -> (i32, i32)  : i32 {
              %c8_i32 = arith.constant 8 : i32
              %16 = arith.muli %arg16, %c8_i32 : i32
              %17 = arith.addi %16, %8 : i32
              %c32768_i32 = arith.constant 32768 : i32
              %18 = arith.addi %17, %c32768_i32 : i32
              %19 = llvm.inttoptr %18 : i32 to !llvm.ptr<3>
              %c8_i32_9 = arith.constant 8 : i32
              %20 = arith.muli %arg16, %c8_i32_9 : i32
              %21 = arith.addi %20, %8 : i32
              %c32784_i32 = arith.constant 32784 : i32
              %22 = arith.addi %21, %c32784_i32 : i32
              %23 = llvm.inttoptr %22 : i32 to !llvm.ptr<3>
              %c10000000_i32 = arith.constant 10000000 : i32
              nvvm.mbarrier.try_wait.parity %23, %arg17, %c10000000_i32 : !llvm.ptr<3>, i32, i32
              %c16384_i32 = arith.constant 16384 : i32
              nvvm.mbarrier.arrive.expect_tx %19, %c16384_i32 : !llvm.ptr<3>, i32
              %c64_i32 = arith.constant 64 : i32
              %24 = arith.muli %arg15, %c64_i32 : i32
              %c16384_i32_10 = arith.constant 16384 : i32
              %25 = arith.muli %arg16, %c16384_i32_10 : i32
              %26 = arith.addi %25, %8 : i32
              %27 = llvm.inttoptr %26 : i32 to !llvm.ptr<3>
              %28 = llvm.addrspacecast %27 : !llvm.ptr<3> to !llvm.ptr<7>
              nvvm.cp.async.bulk.tensor.shared.cluster.global %28, %1, %19, box[%24, %13] : !llvm.ptr<7>, !llvm.ptr
              %c16384_i32_11 = arith.constant 16384 : i32
              %29 = arith.muli %arg16, %c16384_i32_11 : i32
              %30 = arith.addi %29, %8 : i32
              %c8192_i32 = arith.constant 8192 : i32
              %31 = arith.addi %30, %c8192_i32 : i32
              %32 = llvm.inttoptr %31 : i32 to !llvm.ptr<3>
              %33 = llvm.addrspacecast %32 : !llvm.ptr<3> to !llvm.ptr<7>
              nvvm.cp.async.bulk.tensor.shared.cluster.global %33, %3, %19, box[%14, %24] : !llvm.ptr<7>, !llvm.ptr
              %c1_i32_12 = arith.constant 1 : i32
              %34 = arith.addi %arg16, %c1_i32_12 : i32
              %c2_i32 = arith.constant 2 : i32
              %35 = arith.cmpi eq, %34, %c2_i32 : i32
              %c0_i32_13 = arith.constant 0 : i32
              %36 = arith.select %35, %c0_i32_13, %34 : i32
              %37 = arith.extui %35 : i1 to i32
              %38 = arith.xori %arg17, %37 : i32
              scf.yield %36, %38 : i32, i32
            }
          }
        }
      }
      gpu.terminator
    }
    return
  }
}
