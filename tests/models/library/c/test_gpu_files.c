#include <stdint.h>
int (*on_encode)(void *, int, unsigned, uint64_t, const uint64_t *, const uint64_t *, const uint32_t *, int);
int cuTensorMapEncodeTiled(void *map, int dtype, unsigned rank, void *at, const uint64_t *sizes,
                           const uint64_t *strides, const uint32_t *box, const uint32_t *steps,
                           int interleave, int swizzle, int l2, int fill) {
  if (interleave || fill || steps[0] != 1 || (uintptr_t)map % 64) return 1;
  (void)l2;
  return on_encode(map, dtype, rank, (uintptr_t)at, sizes, strides, box, swizzle);
}
