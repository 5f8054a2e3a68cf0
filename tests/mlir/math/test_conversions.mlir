// ----- PROGRAM
func.func @main(%x: tensor<{count}x{source}>) -> ({results}) {
  {lines}
  return {values} : {results}
}
// ----- OF_UNKNOWN_FLOAT
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %other = arith.{op} %x : tensor<8xf32> to tensor<8x{float}>
  %y = arith.{back} %other : tensor<8x{float}> to tensor<8xf32>
  %z = arith.{op} %y : tensor<8xf32> to tensor<8x{float}>
  %sum = arith.addf %z, %other : tensor<8x{float}>
  %result = arith.{back} %sum : tensor<8x{float}> to tensor<8xf32>
  return %result : tensor<8xf32>
}
// ----- OF_LONG_INTEGER
func.func @main(%x: tensor<8xf64>) -> tensor<8xi64> {
  %long = arith.fptosi %x : tensor<8xf64> to tensor<8xi128>
  %y = arith.trunci %long : tensor<8xi128> to tensor<8xi64>
  return %y : tensor<8xi64>
}
// ----- BYTES
func.func @main(%x: tensor<256xf8E4M3FN>, %y: tensor<256xf8E4M3FN>) -> (tensor<256xf8E4M3FN>, tensor<256xi1>) {
  %half = arith.constant dense<0.5> : tensor<256xf8E4M3FN>
  %sum = arith.addf %x, %y : tensor<256xf8E4M3FN>
  %product = arith.mulf %sum, %half : tensor<256xf8E4M3FN>
  %is_more = arith.cmpf ogt, %product, %x : tensor<256xf8E4M3FN>
  %negative = arith.negf %product : tensor<256xf8E4M3FN>
  %z = arith.select %is_more, %negative, %y : tensor<256xi1>, tensor<256xf8E4M3FN>
  return %z, %is_more : tensor<256xf8E4M3FN>, tensor<256xi1>
}
