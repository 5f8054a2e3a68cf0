// ----- LOOP
module {
  func.func @f(%a: {of_a}, %b: {of_b}, %c: memref<16x64x{kind}>, %zero: vector<2x2x{kind}>, %i: index, %j: index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %sums = scf.for %k = %c0 to %c64 step %c1 iter_args(%sum = %zero) -> (vector<2x2x{kind}>) {
      %sum0 = vector.extract %sum[0] : vector<2x{kind}> from vector<2x2x{kind}>
      %sum1 = vector.extract %sum[1] : vector<2x{kind}> from vector<2x2x{kind}>{products}
      %next = vector.broadcast {last}0 : vector<2x{kind}> to vector<2x2x{kind}>
      %both = vector.insert {last}1, %next [1] : vector<2x{kind}> into vector<2x2x{kind}>
      scf.yield %both : vector<2x2x{kind}>
    }
    %row0 = vector.extract %sums[0] : vector<2x{kind}> from vector<2x2x{kind}>
    vector.store %row0, %c[%i, %j] : memref<16x64x{kind}>, vector<2x{kind}>
    return
  }
}
