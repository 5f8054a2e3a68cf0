// ----- NIBBLES
func.func private @vpmaddubsw_256(vector<16xi16>, vector<32xi8>, vector<32xi8>) -> vector<16xi16>
func.func private @vpmaddwd_256(vector<8xi32>, vector<16xi16>, vector<16xi16>) -> vector<8xi32>
func.func @f(%u: memref<8x32xi8>, %s: memref<8x32xi8>, %c: memref<8xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %empty = arith.constant dense<0> : vector<16xi16>
  %ones = arith.constant dense<1> : vector<16xi16>
  %words = scf.for %row = %c0 to %c8 step %c1 iter_args(%before = %empty) -> (vector<16xi16>) {
    %unsigned = vector.load %u[%row, %c0] : memref<8x32xi8>, vector<32xi8>
    %signed = vector.load %s[%row, %c0] : memref<8x32xi8>, vector<32xi8>
    %after = func.call @vpmaddubsw_256(%before, %unsigned, %signed) : (vector<16xi16>, vector<32xi8>, vector<32xi8>) -> vector<16xi16>
    scf.yield %after : vector<16xi16>
  }
  %start = vector.load %c[%c0] : memref<8xi32>, vector<8xi32>
  %sums = func.call @vpmaddwd_256(%start, %words, %ones) : (vector<8xi32>, vector<16xi16>, vector<16xi16>) -> vector<8xi32>
  vector.store %sums, %c[%c0] : memref<8xi32>, vector<8xi32>
  return
}
