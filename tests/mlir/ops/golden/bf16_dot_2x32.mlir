module {
  func.func @f(%arg0: memref<2x2xbf16>, %arg1: memref<32x2xbf16>, %arg2: memref<2x32xf32>) {
    %c0 = arith.constant 0 : index
    %cst = arith.constant 0.000000e+00 : bf16
    %cst_0 = arith.constant 0.000000e+00 : f32
    %0 = vector.transfer_read %arg0[%c0, %c0], %cst {in_bounds = [true, true]} : memref<2x2xbf16>, vector<2x2xbf16>
    %1 = vector.transfer_read %arg1[%c0, %c0], %cst {in_bounds = [true, true]} : memref<32x2xbf16>, vector<32x2xbf16>
    %2 = vector.transfer_read %arg2[%c0, %c0], %cst_0 {in_bounds = [true, true]} : memref<2x32xf32>, vector<2x32xf32>
    %3 = vector.shape_cast %1 : vector<32x2xbf16> to vector<64xbf16>
    %4 = vector.extract_strided_slice %3 {offsets = [0], sizes = [32], strides = [1]} : vector<64xbf16> to vector<32xbf16>
    %5 = vector.extract_strided_slice %3 {offsets = [32], sizes = [32], strides = [1]} : vector<64xbf16> to vector<32xbf16>
    %6 = vector.extract %0[0] : vector<2xbf16> from vector<2x2xbf16>
    %7 = vector.bitcast %6 : vector<2xbf16> to vector<1xi32>
    %8 = vector.extract %7[0] : i32 from vector<1xi32>
    %9 = vector.broadcast %8 : i32 to vector<16xi32>
    %10 = vector.bitcast %9 : vector<16xi32> to vector<32xbf16>
    %11 = vector.extract %2[0] : vector<32xf32> from vector<2x32xf32>
    %12 = vector.extract_strided_slice %11 {offsets = [0], sizes = [16], strides = [1]} : vector<32xf32> to vector<16xf32>
    %13 = x86.avx512.dot %12, %10, %4 : vector<32xbf16> -> vector<16xf32>
    %14 = vector.insert_strided_slice %13, %11 {offsets = [0], strides = [1]} : vector<16xf32> into vector<32xf32>
    %15 = vector.extract_strided_slice %14 {offsets = [16], sizes = [16], strides = [1]} : vector<32xf32> to vector<16xf32>
    %16 = x86.avx512.dot %15, %10, %5 : vector<32xbf16> -> vector<16xf32>
    %17 = vector.insert_strided_slice %16, %14 {offsets = [16], strides = [1]} : vector<16xf32> into vector<32xf32>
    %18 = vector.insert %17, %2 [0] : vector<32xf32> into vector<2x32xf32>
    %19 = vector.extract %0[1] : vector<2xbf16> from vector<2x2xbf16>
    %20 = vector.bitcast %19 : vector<2xbf16> to vector<1xi32>
    %21 = vector.extract %20[0] : i32 from vector<1xi32>
    %22 = vector.broadcast %21 : i32 to vector<16xi32>
    %23 = vector.bitcast %22 : vector<16xi32> to vector<32xbf16>
    %24 = vector.extract %18[1] : vector<32xf32> from vector<2x32xf32>
    %25 = vector.extract_strided_slice %24 {offsets = [0], sizes = [16], strides = [1]} : vector<32xf32> to vector<16xf32>
    %26 = x86.avx512.dot %25, %23, %4 : vector<32xbf16> -> vector<16xf32>
    %27 = vector.insert_strided_slice %26, %24 {offsets = [0], strides = [1]} : vector<16xf32> into vector<32xf32>
    %28 = vector.extract_strided_slice %27 {offsets = [16], sizes = [16], strides = [1]} : vector<32xf32> to vector<16xf32>
    %29 = x86.avx512.dot %28, %23, %5 : vector<32xbf16> -> vector<16xf32>
    %30 = vector.insert_strided_slice %29, %27 {offsets = [16], strides = [1]} : vector<16xf32> into vector<32xf32>
    %31 = vector.insert %30, %18 [1] : vector<32xf32> into vector<2x32xf32>
    vector.transfer_write %31, %arg2[%c0, %c0] {in_bounds = [true, true]} : vector<2x32xf32>, memref<2x32xf32>
    return
  }
}
