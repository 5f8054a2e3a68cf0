// A shift with rounding, of which a shift by 0 rounds nothing.
// issue: https://github.com/llvm/llvm-project/issues/154259
// arguments: 125, 0
// outputs: 125

func.func @main(%x: i64, %by: i64) -> i64 {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %shifts = arith.cmpi sgt, %by, %zero : i64
  %r = scf.if %shifts -> i64 {
    %less = arith.subi %by, %one : i64
    %half = arith.shrsi %x, %less : i64
    %bit = arith.andi %half, %one : i64
    %whole = arith.shrsi %x, %by : i64
    %rounded = arith.addi %whole, %bit : i64
    scf.yield %rounded : i64
  } else {
    scf.yield %x : i64
  }
  return %r : i64
}
