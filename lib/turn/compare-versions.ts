/**
 * Orders versions as people write them: runs of digits by their number, the rest by code unit; `1.9` < `1.10`,
 * `2026-10-b` < `2026-11-a`.
 */
export function compareVersions(a: string, b: string): number {
  if (a === b) return 0;
  const [partsOfA, partsOfB] = [a, b].map((version) => version.match(/\d+|\D+/g) ?? []);
  for (let i = 0; i < Math.max(partsOfA.length, partsOfB.length); i += 1) {
    const [x = '', y = ''] = [partsOfA[i], partsOfB[i]];
    if (x === y) continue;
    const numbers = /^\d/.test(x) && /^\d/.test(y);
    // Not as doubles: a build number made of a time may have more digits than they hold.
    if (numbers && BigInt(x) !== BigInt(y)) return BigInt(x) < BigInt(y) ? -1 : 1;
    if (!numbers) return x < y ? -1 : 1;
  }
  return 0;
}
