// A blocked SGEMM with the knobs of CLBlast's, written anew: the same tiles, accesses and loops.
// C = alpha A B + beta C; A is stored K x M, B is stored K x N. Shared memory begins at an offset that the compiler
// does not know: it would widen accesses beyond VWM and VWN.
template <int N> struct alignas(4 * (N > 4 ? 4 : N)) Row { float at[N]; };
using RowA = Row<VWM>;
using RowB = Row<VWN>;
#define THREADS (MDIMC * NDIMC)
#define MWI (MWG / MDIMC)
#define NWI (NWG / NDIMC)

template <typename R, int WIDTH, int BLOCK, int ACROSS>
__device__ __forceinline__ void stage(const R* __restrict__ from, R* to, int length, int first, int k, int thread) {
  constexpr int EACH = BLOCK / ACROSS / WIDTH, ROWS = KWG / (THREADS / ACROSS);
  const int column = thread % ACROSS * EACH, row = thread / ACROSS * ROWS;
#pragma unroll
  for (int r = 0; r < ROWS; ++r)
#pragma unroll
    for (int c = 0; c < EACH; ++c)
      to[(row + r) * (BLOCK / WIDTH) + column + c] = from[(k + row + r) * (length / WIDTH) + first + column + c];
}

extern "C" __global__ __launch_bounds__(THREADS) void blocked_gemm(
    int m, int n, int k, float alpha, float beta, const RowA* __restrict__ a, const RowB* __restrict__ b, RowA* c) {
#if SA
  __shared__ RowA staged_a[KWG * MWG / VWM];
  RowA* tile_a = staged_a + (n & 1);
#endif
#if SB
  __shared__ RowB staged_b[KWG * NWG / VWN];
  RowB* tile_b = staged_b + (n & 1);
#endif
  const int x = threadIdx.x, y = threadIdx.y;
  const int thread = x + MDIMC * y;
  float sums[NWI][MWI] = {};
  for (int tile = 0; tile < k; tile += KWG) {
#if SA
    stage<RowA, VWM, MWG, MDIMA>(a, tile_a, m, blockIdx.x * (MWG / VWM), tile, thread);
#endif
#if SB
    stage<RowB, VWN, NWG, NDIMB>(b, tile_b, n, blockIdx.y * (NWG / VWN), tile, thread);
#endif
#if SA || SB
    __syncthreads();
#endif
    for (int step = 0; step < KWG; step += KWI) {
#pragma unroll
      for (int inner = 0; inner < KWI; ++inner) {
        RowA part_a[MWI / VWM];
        RowB part_b[NWI / VWN];
#pragma unroll
        for (int i = 0; i < MWI / VWM; ++i)
#if SA
          part_a[i] = tile_a[(step + inner) * (MWG / VWM) + x * (MWI / VWM) + i];
#else
          part_a[i] = a[(tile + step + inner) * (m / VWM) + blockIdx.x * (MWG / VWM) + x * (MWI / VWM) + i];
#endif
#pragma unroll
        for (int i = 0; i < NWI / VWN; ++i)
#if SB
          part_b[i] = tile_b[(step + inner) * (NWG / VWN) + y * (NWI / VWN) + i];
#else
          part_b[i] = b[(tile + step + inner) * (n / VWN) + blockIdx.y * (NWG / VWN) + y * (NWI / VWN) + i];
#endif
#pragma unroll
        for (int j = 0; j < NWI; ++j)
#pragma unroll
          for (int i = 0; i < MWI; ++i)
            sums[j][i] = fmaf(part_a[i / VWM].at[i % VWM], part_b[j / VWN].at[j % VWN], sums[j][i]);
      }
    }
#if SA || SB
    __syncthreads();
#endif
  }
#pragma unroll
  for (int j = 0; j < NWI; ++j)
#pragma unroll
    for (int i = 0; i < MWI / VWM; ++i) {
      RowA* to = c + (blockIdx.y * NWG + y * NWI + j) * (m / VWM) + blockIdx.x * (MWG / VWM) + x * (MWI / VWM) + i;
      RowA was = *to;
#pragma unroll
      for (int v = 0; v < VWM; ++v) was.at[v] = alpha * sums[j][i * VWM + v] + beta * was.at[v];
      *to = was;
    }
}
