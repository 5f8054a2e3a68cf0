module {
  func.func @f(%arg0: vector<4x1xf32>, %arg1: vector<2x1xf32>, %arg2: vector<2x2xf32>) -> vector<2x2xf32> {
    %cst = arith.constant dense<0.000000e+00> : vector<2x2xf32>
    %0 = arith.bitcast %arg0 : vector<4x1xf32> to vector<4x1xi32>
    %cst_0 = arith.constant dense<4096> : vector<4x1xi32>
    %1 = arith.addi %0, %cst_0 : vector<4x1xi32>
    %cst_1 = arith.constant dense<-8192> : vector<4x1xi32>
    %2 = arith.andi %1, %cst_1 : vector<4x1xi32>
    %3 = arith.bitcast %2 : vector<4x1xi32> to vector<4x1xf32>
    %4 = arith.subf %arg0, %3 : vector<4x1xf32>
    %5 = arith.bitcast %arg1 : vector<2x1xf32> to vector<2x1xi32>
    %cst_2 = arith.constant dense<4096> : vector<2x1xi32>
    %6 = arith.addi %5, %cst_2 : vector<2x1xi32>
    %cst_3 = arith.constant dense<-8192> : vector<2x1xi32>
    %7 = arith.andi %6, %cst_3 : vector<2x1xi32>
    %8 = arith.bitcast %7 : vector<2x1xi32> to vector<2x1xf32>
    %9 = arith.subf %arg1, %8 : vector<2x1xf32>
    %10 = nvgpu.mma.sync(%4, %8, %cst) {mmaShape = [16, 8, 8], tf32Enabled} : (vector<4x1xf32>, vector<2x1xf32>, vector<2x2xf32>) -> vector<2x2xf32>
    %11 = nvgpu.mma.sync(%3, %9, %10) {mmaShape = [16, 8, 8], tf32Enabled} : (vector<4x1xf32>, vector<2x1xf32>, vector<2x2xf32>) -> vector<2x2xf32>
    %12 = nvgpu.mma.sync(%3, %8, %11) {mmaShape = [16, 8, 8], tf32Enabled} : (vector<4x1xf32>, vector<2x1xf32>, vector<2x2xf32>) -> vector<2x2xf32>
    %13 = arith.addf %arg2, %12 : vector<2x2xf32>
    return %13 : vector<2x2xf32>
  }
}
