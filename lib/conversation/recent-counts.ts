/**
 * Numbers by key, of which those that were asked for last are remembered: at least `size`, at most twice as many. Two maps take
 * turns, so that a look costs nothing but the look.
 */
export class RecentCounts {
  private recent = new Map<string, number>();
  private older = new Map<string, number>();

  constructor(private readonly size: number) {}

  get(key: string, count: () => number): number {
    const known = this.recent.get(key);
    if (known !== undefined) return known;
    const value = this.older.get(key) ?? count();
    if (this.recent.size >= this.size) {
      this.older = this.recent;
      this.recent = new Map();
    }
    this.recent.set(key, value);
    return value;
  }
}
