module {
  func.func @f(%arg0: memref<3xvector<4x1xf32>>, %arg1: vector<2x1xf32>, %arg2: vector<2x2xf32>) -> (vector<2x2xf32>, vector<2x2xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c8 = arith.constant 8 : index
    %0:2 = scf.for %arg3 = %c0 to %c8 step %c1 iter_args(%arg4 = %arg2, %arg5 = %arg2) -> (vector<2x2xf32>, vector<2x2xf32>) {
      %1 = memref.load %arg0[%c0] : memref<3xvector<4x1xf32>>
      %cst = arith.constant dense<0.000000e+00> : vector<2x2xf32>
      %cst_0 = arith.constant dense<0.000000e+00> : vector<2x2xf32>
      %2 = arith.bitcast %1 : vector<4x1xf32> to vector<4x1xi32>
      %cst_1 = arith.constant dense<4096> : vector<4x1xi32>
      %3 = arith.addi %2, %cst_1 : vector<4x1xi32>
      %cst_2 = arith.constant dense<-8192> : vector<4x1xi32>
      %4 = arith.andi %3, %cst_2 : vector<4x1xi32>
      %5 = arith.bitcast %4 : vector<4x1xi32> to vector<4x1xf32>
      %6 = arith.subf %1, %5 : vector<4x1xf32>
      %7 = arith.bitcast %arg1 : vector<2x1xf32> to vector<2x1xi32>
      %cst_3 = arith.constant dense<4096> : vector<2x1xi32>
      %8 = arith.addi %7, %cst_3 : vector<2x1xi32>
      %cst_4 = arith.constant dense<-8192> : vector<2x1xi32>
      %9 = arith.andi %8, %cst_4 : vector<2x1xi32>
      %10 = arith.bitcast %9 : vector<2x1xi32> to vector<2x1xf32>
      %11 = arith.subf %arg1, %10 : vector<2x1xf32>
      %12 = nvgpu.mma.sync(%6, %10, %cst) {mmaShape = [16, 8, 8], tf32Enabled} : (vector<4x1xf32>, vector<2x1xf32>, vector<2x2xf32>) -> vector<2x2xf32>
      %13 = nvgpu.mma.sync(%6, %10, %cst_0) {mmaShape = [16, 8, 8], tf32Enabled} : (vector<4x1xf32>, vector<2x1xf32>, vector<2x2xf32>) -> vector<2x2xf32>
      %14 = nvgpu.mma.sync(%5, %11, %12) {mmaShape = [16, 8, 8], tf32Enabled} : (vector<4x1xf32>, vector<2x1xf32>, vector<2x2xf32>) -> vector<2x2xf32>
      %15 = nvgpu.mma.sync(%5, %11, %13) {mmaShape = [16, 8, 8], tf32Enabled} : (vector<4x1xf32>, vector<2x1xf32>, vector<2x2xf32>) -> vector<2x2xf32>
      %16 = nvgpu.mma.sync(%5, %10, %14) {mmaShape = [16, 8, 8], tf32Enabled} : (vector<4x1xf32>, vector<2x1xf32>, vector<2x2xf32>) -> vector<2x2xf32>
      %17 = nvgpu.mma.sync(%5, %10, %15) {mmaShape = [16, 8, 8], tf32Enabled} : (vector<4x1xf32>, vector<2x1xf32>, vector<2x2xf32>) -> vector<2x2xf32>
      %18 = memref.load %arg0[%c1] : memref<3xvector<4x1xf32>>
      %19 = arith.bitcast %18 : vector<4x1xf32> to vector<4x1xi32>
      %cst_5 = arith.constant dense<4096> : vector<4x1xi32>
      %20 = arith.addi %19, %cst_5 : vector<4x1xi32>
      %cst_6 = arith.constant dense<-8192> : vector<4x1xi32>
      %21 = arith.andi %20, %cst_6 : vector<4x1xi32>
      %22 = arith.bitcast %21 : vector<4x1xi32> to vector<4x1xf32>
      %23 = arith.subf %18, %22 : vector<4x1xf32>
      %24 = nvgpu.mma.sync(%23, %10, %16) {mmaShape = [16, 8, 8], tf32Enabled} : (vector<4x1xf32>, vector<2x1xf32>, vector<2x2xf32>) -> vector<2x2xf32>
      %25 = nvgpu.mma.sync(%23, %10, %17) {mmaShape = [16, 8, 8], tf32Enabled} : (vector<4x1xf32>, vector<2x1xf32>, vector<2x2xf32>) -> vector<2x2xf32>
      %26 = nvgpu.mma.sync(%22, %11, %24) {mmaShape = [16, 8, 8], tf32Enabled} : (vector<4x1xf32>, vector<2x1xf32>, vector<2x2xf32>) -> vector<2x2xf32>
      %27 = nvgpu.mma.sync(%22, %11, %25) {mmaShape = [16, 8, 8], tf32Enabled} : (vector<4x1xf32>, vector<2x1xf32>, vector<2x2xf32>) -> vector<2x2xf32>
      %28 = nvgpu.mma.sync(%22, %10, %26) {mmaShape = [16, 8, 8], tf32Enabled} : (vector<4x1xf32>, vector<2x1xf32>, vector<2x2xf32>) -> vector<2x2xf32>
      %29 = nvgpu.mma.sync(%22, %10, %27) {mmaShape = [16, 8, 8], tf32Enabled} : (vector<4x1xf32>, vector<2x1xf32>, vector<2x2xf32>) -> vector<2x2xf32>
      %30 = arith.addf %arg4, %28 : vector<2x2xf32>
      %31 = arith.addf %arg5, %29 : vector<2x2xf32>
      %32 = memref.load %arg0[%c2] : memref<3xvector<4x1xf32>>
      %cst_7 = arith.constant dense<0.000000e+00> : vector<2x2xf32>
      %cst_8 = arith.constant dense<0.000000e+00> : vector<2x2xf32>
      %33 = arith.bitcast %32 : vector<4x1xf32> to vector<4x1xi32>
      %cst_9 = arith.constant dense<4096> : vector<4x1xi32>
      %34 = arith.addi %33, %cst_9 : vector<4x1xi32>
      %cst_10 = arith.constant dense<-8192> : vector<4x1xi32>
      %35 = arith.andi %34, %cst_10 : vector<4x1xi32>
      %36 = arith.bitcast %35 : vector<4x1xi32> to vector<4x1xf32>
      %37 = arith.subf %32, %36 : vector<4x1xf32>
      %38 = nvgpu.mma.sync(%37, %10, %cst_7) {mmaShape = [16, 8, 8], tf32Enabled} : (vector<4x1xf32>, vector<2x1xf32>, vector<2x2xf32>) -> vector<2x2xf32>
      %39 = nvgpu.mma.sync(%37, %10, %cst_8) {mmaShape = [16, 8, 8], tf32Enabled} : (vector<4x1xf32>, vector<2x1xf32>, vector<2x2xf32>) -> vector<2x2xf32>
      %40 = nvgpu.mma.sync(%36, %11, %38) {mmaShape = [16, 8, 8], tf32Enabled} : (vector<4x1xf32>, vector<2x1xf32>, vector<2x2xf32>) -> vector<2x2xf32>
      %41 = nvgpu.mma.sync(%36, %11, %39) {mmaShape = [16, 8, 8], tf32Enabled} : (vector<4x1xf32>, vector<2x1xf32>, vector<2x2xf32>) -> vector<2x2xf32>
      %42 = nvgpu.mma.sync(%36, %10, %40) {mmaShape = [16, 8, 8], tf32Enabled} : (vector<4x1xf32>, vector<2x1xf32>, vector<2x2xf32>) -> vector<2x2xf32>
      %43 = nvgpu.mma.sync(%36, %10, %41) {mmaShape = [16, 8, 8], tf32Enabled} : (vector<4x1xf32>, vector<2x1xf32>, vector<2x2xf32>) -> vector<2x2xf32>
      %44 = arith.addf %30, %42 : vector<2x2xf32>
      %45 = arith.addf %31, %43 : vector<2x2xf32>
      scf.yield %44, %45 : vector<2x2xf32>, vector<2x2xf32>
    }
    return %0#0, %0#1 : vector<2x2xf32>, vector<2x2xf32>
  }
}
