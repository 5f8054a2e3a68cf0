// ----- WHILE
%r, %last = scf.while (%n = %c0, %x = %a) : (i64, i64) -> (i64, i64) {
    %goes = arith.cmpi ne, %x, %c1 : i64
    scf.condition(%goes) %n, %x : i64, i64
  } do {
  ^bb0(%n: i64, %x: i64):
    %low = arith.andi %x, %c1 : i64
    %odd = arith.cmpi eq, %low, %c1 : i64
    %y = scf.if %odd -> i64 {
      %w = arith.muli %x, %c3 : i64
      %u = arith.addi %w, %c1 : i64
      scf.yield %u : i64
    } else {
      %h = arith.divsi %x, %c2 : i64
      scf.yield %h : i64
    }
    %m = arith.addi %n, %c1 : i64
    scf.yield %m, %y : i64, i64
  }
// ----- GRAPH
cf.br ^head(%c0, %a : i64, i64)
  ^head(%n: i64, %x: i64):
    %goes = arith.cmpi ne, %x, %c1 : i64
    cf.cond_br %goes, ^body, ^exit
  ^body:
    %low = arith.andi %x, %c1 : i64
    %odd = arith.cmpi eq, %low, %c1 : i64
    %m = arith.addi %n, %c1 : i64
    cf.cond_br %odd, ^up, ^down
  ^up:
    %w = arith.muli %x, %c3 : i64
    %u = arith.addi %w, %c1 : i64
    cf.br ^head(%m, %u : i64, i64)
  ^down:
    %h = arith.divsi %x, %c2 : i64
    cf.br ^head(%m, %h : i64, i64)
  ^exit:
// ----- JUMPS
%w = arith.trunci %a : i64 to i32
    cf.switch %w : i32, [
      default: ^end(%c5 : i64),
      2: ^end(%c1 : i64),
      7: ^seven(%a : i64)
    ]
  ^seven(%x: i64):
    %y = arith.muli %x, %c2 : i64
    cf.br ^end(%y : i64)
  ^end(%r: i64):
