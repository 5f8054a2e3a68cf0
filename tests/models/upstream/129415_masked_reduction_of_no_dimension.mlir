// A reduction over no dimension loses its accumulator.
// issue: https://github.com/llvm/llvm-project/issues/129415
// printed: ( ( 6, 3 ), ( 3, 3 ) )

func.func @main() {
  %c1 = arith.constant 1 : index
  %m = vector.create_mask %c1, %c1 : vector<2x2xi1>
  %o = arith.constant 3 : i32
  %v = vector.broadcast %o : i32 to vector<2x2xi32>
  %r = vector.mask %m { vector.multi_reduction <add>, %v, %v [] : vector<2x2xi32> to vector<2x2xi32> } : vector<2x2xi1> -> vector<2x2xi32>
  vector.print %r : vector<2x2xi32>
  return
}
