// ----- CHOSEN
func.func @main(%flag: i1) {
  %t = gpu.wait async
  %u = arith.select %flag, %t, %t : !gpu.async.token
  gpu.wait [%u]
  return
}
