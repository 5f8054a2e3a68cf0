// Masks of sizes far above a vector's, and below 0.
// issue: https://github.com/llvm/llvm-project/issues/113689
// arguments: 2251799813685248, -3
// printed: ( 1, 1, 1, 1, 1 )( 0, 0, 0, 0, 0 )

func.func @main(%large: index, %negative: index) {
  %a = vector.create_mask %large : vector<5xi1>
  vector.print %a : vector<5xi1>
  %b = vector.create_mask %negative : vector<5xi1>
  vector.print %b : vector<5xi1>
  return
}
