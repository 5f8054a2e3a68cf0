// ----- GROWING_LOOP

func.func @f(%a: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %z = arith.constant 7.0 : f32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%x = %a) -> (tensor<?xf32>) {
    %y = tensor.pad %x low[0] high[%c1] {
    ^bb0(%k: index):
      tensor.yield %z : f32
    } : tensor<?xf32> to tensor<?xf32>
    scf.yield %y : tensor<?xf32>
  }
  return %r : tensor<?xf32>
}
// ----- GLOBAL_IN_A_KERNEL

memref.global @state : memref<4xf32> = dense<1.0>
func.func @main(%a: memref<4xf32>, %x: f32) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  gpu.launch blocks(%b0, %b1, %b2) in (%g0 = %c1, %g1 = %c1, %g2 = %c1) threads(%t0, %t1, %t2) in (%s0 = %c4, %s1 = %c1, %s2 = %c1) {
    %h = memref.get_global @state : memref<4xf32>
    memref.store %x, %h[%t0] : memref<4xf32>
    gpu.terminator
  }
  %g = memref.get_global @state : memref<4xf32>
  memref.copy %g, %a : memref<4xf32> to memref<4xf32>
  return
}
// ----- SEVERAL_BLOCKS

func.func @f(%a: memref<4xf32>, %go: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %d = gpu.alloc() : memref<4xf32>
  gpu.memcpy %d, %a : memref<4xf32>, memref<4xf32>
  scf.for %i = %c0 to %c2 step %c1 {
    scf.execute_region {
      %x = memref.alloc() : memref<4xf32>
      memref.copy %a, %x : memref<4xf32> to memref<4xf32>
      cf.cond_br %go, ^next, ^end
    ^next:
      memref.copy %x, %a : memref<4xf32> to memref<4xf32>
      cf.br ^end
    ^end:
      scf.yield
    }
  }
  gpu.memcpy %a, %d : memref<4xf32>, memref<4xf32>
  return
}
// ----- GLOBALS_OF_KERNELS

module attributes {gpu.container_module} {
  gpu.module @m {
    memref.global @state : memref<4xf32> = dense<0.0>
    memref.global constant @table : memref<4xf32> = dense<2.0>
    gpu.func @writes(%a: memref<4xf32>) kernel {
      %c0 = arith.constant 0 : index
      %x = memref.load %a[%c0] : memref<4xf32>
      %s = memref.get_global @state : memref<4xf32>
      memref.store %x, %s[%c0] : memref<4xf32>
      gpu.return
    }
    gpu.func @looks_up(%a: memref<4xf32>) kernel {
      %c0 = arith.constant 0 : index
      %s = memref.get_global @table : memref<4xf32>
      %x = memref.load %s[%c0] : memref<4xf32>
      memref.store %x, %a[%c0] : memref<4xf32>
      gpu.return
    }
  }
  func.func @main(%a: memref<4xf32>) {
    %c1 = arith.constant 1 : index
    gpu.launch_func @m::@writes blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%a : memref<4xf32>)
    gpu.launch_func @m::@looks_up blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%a : memref<4xf32>)
    return
  }
}
// ----- FORWARDED_BY_A_CONDITION

func.func @main(%a: memref<2xf32>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%b0, %b1, %b2) in (%g0 = %c1, %g1 = %c1, %g2 = %c1) threads(%t0, %t1, %t2) in (%s0 = %c1, %s1 = %c1, %s2 = %c1) {
    %c0 = arith.constant 0 : index
    %one = arith.constant 1 : index
    %three = arith.constant 3 : index
    %first = memref.alloc() : memref<1xf32>
    %x = memref.load %a[%c0] : memref<2xf32>
    memref.store %x, %first[%c0] : memref<1xf32>
    %r:2 = scf.while (%before = %first, %i = %c0) : (memref<1xf32>, index) -> (memref<1xf32>, index) {
      %t = memref.alloc() : memref<1xf32>
      %y = memref.load %a[%one] : memref<2xf32>
      memref.store %y, %t[%c0] : memref<1xf32>
      %z = memref.load %before[%c0] : memref<1xf32>
      memref.store %z, %a[%one] : memref<2xf32>
      %more = arith.cmpi slt, %i, %three : index
      scf.condition(%more) %t, %i : memref<1xf32>, index
    } do {
    ^bb0(%z: memref<1xf32>, %i: index):
      %j = arith.addi %i, %one : index
      scf.yield %z, %j : memref<1xf32>, index
    }
    %v = memref.load %r#0[%c0] : memref<1xf32>
    memref.store %v, %a[%c0] : memref<2xf32>
    gpu.terminator
  }
  return
}
