// ----- TEXT
module @named attributes {gpu.container_module} {
  func.func @f() -> tensor<2xi32> {
    %0 = arith.constant dense_resource<weights> : tensor<2xi32> loc("mine":7:1)
    return %0 : tensor<2xi32>
  }
}

{-#
  dialect_resources: {
    builtin: {
      weights: "0x040000000100000002000000"
    }
  }
#-}
