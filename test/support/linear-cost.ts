/**
 * Expects that eight times the size costs at most 24 times as much; quadratic work would cost 64 times as much.
 * @param prepare returns the work to measure, for a size
 * @param size the smaller of both sizes
 */
export function expectLinear(prepare: (size: number) => () => void, size = 1000): void {
  // Use the fastest of many runs, because the machine may pause during some.
  const cost = (of: number): number => {
    const run = prepare(of);
    return Math.min(
      ...Array.from({ length: 15 }, () => {
        const begin = performance.now();
        run();
        return performance.now() - begin;
      }),
    );
  };
  const small = cost(size);
  expect(cost(8 * size) / small).toBeLessThan(24);
}
