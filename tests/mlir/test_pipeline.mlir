// ----- REPORT

  ----Wall Time----  ----Name----
    0.0003 ( 30.1%)  'func.func' Pipeline
    0.0003 ( 28.0%)    ConvertLinalgToLoopsPass
    0.0001 (  1.7%)    CSEPass
    0.0000 (  0.1%)      (A) DominanceInfo
    0.0002 ( 12.4%)  CSEPass
    0.0004 ( 44.5%)  Rest
    0.0009 (100.0%)  Total
// ----- TENSOR_OF_UNKNOWN_ORIGIN

func.func @f(%a: i32) -> tensor<4xf32> {
  %0 = builtin.unrealized_conversion_cast %a : i32 to tensor<4xf32>
  return %0 : tensor<4xf32>
}
