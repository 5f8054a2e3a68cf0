// ----- MODULE
module {
  func.func private @outside()
  module {}
  func.func @f(%is: i1, %n: index) {
    %zero = arith.constant 0 : index
    scf.for %i = %zero to %n step %n {
      scf.if %is {
        func.call @outside() : () -> ()
      } else {
        scf.for %j = %zero to %n step %n { }
      }
    }
    cf.cond_br %is, ^last, ^next
  ^next:
    func.call @outside() : () -> ()
    cf.br ^last
  ^never:
    func.call @outside() : () -> ()
    cf.br ^last
  ^last:
    return
  }
}
// ----- NESTED
func.func @f(%flag: i1, %a: memref<4xf32>, %x: f32, %i: index) {
  scf.if %flag {
    scf.if %flag {
      memref.store %x, %a[%i] : memref<4xf32>
    }
  }
  return
}
// ----- COPIED
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
