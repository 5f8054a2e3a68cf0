// ----- MODULE
module attributes {gpu.container_module} {
  memref.global "private" @tile : memref<4xf32, 3>
  gpu.module @m {
    gpu.func @k(%g: memref<16xf32, 1>, %i: index, %x: f32)
        workgroup(%s: memref<4x4xf16, strided<[8, 1], offset: 3>, 3>) private(%p: memref<3xf32, 5>) kernel {
      %t = memref.alloc() : memref<16xf32, 3>
      %w = memref.alloc() : memref<2xvector<4xf32>, affine_map<(d0) -> (d0)>, 3 : i32>
      %v = memref.subview %t[3] [3] [1] : memref<16xf32, 3> to memref<3xf32, strided<[1], offset: 3>, 3>
      memref.store %x, %g[%i] : memref<16xf32, 1>
      %plain = memref.memory_space_cast %g : memref<16xf32, 1> to memref<16xf32>
      memref.store %x, %plain[%i] : memref<16xf32>
      %any = memref.cast %t : memref<16xf32, 3> to memref<*xf32, 3>
      %m = memref.memory_space_cast %t : memref<16xf32, 3> to memref<16xf32>
      cf.br ^next(%v : memref<3xf32, strided<[1], offset: 3>, 3>)
    ^next(%later: memref<3xf32, strided<[1], offset: 3>, 3>):
      gpu.return
    }
  }
  func.func private @f(memref<4xf32, #gpu.memory_space<private>>, tensor<4xf32>) -> memref<?xf32, 3>
  func.func private @tma(!nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = none,
    l2promo = none, oob = zero, interleave = none>)
}
