/** Compared part by part, strings by code unit; in one place of one index all parts have one type. */
export type Key = readonly (string | number)[];

/** Ids in the order of their keys. */
export class SortedIndex {
  private readonly entries: { readonly key: Key; readonly id: string }[] = [];

  add(key: Key, id: string): void {
    this.entries.splice(this.placeOf(key), 0, { key, id });
  }

  remove(key: Key): void {
    this.entries.splice(this.placeOf(key), 1);
  }

  /** Where the key begins with `prefix`, from the first one that is not before `from`. May be changed meanwhile. */
  *startingWith(prefix: Key, from: Key = prefix): Generator<string> {
    let entry = this.entries[this.placeOf(from)];
    while (entry && compare(entry.key, prefix) === 0) {
      yield entry.id;
      entry = this.entries[this.placeBehind(entry.key)];
    }
  }

  last(prefix: Key): string | undefined {
    const entry = this.entries[this.placeBehind(prefix) - 1];
    return entry && compare(entry.key, prefix) === 0 ? entry.id : undefined;
  }

  private placeOf(key: Key): number {
    return this.bisect((entry) => compare(entry, key) < 0);
  }

  private placeBehind(prefix: Key): number {
    return this.bisect((entry) => compare(entry, prefix) <= 0);
  }

  private bisect(isBefore: (entry: Key) => boolean): number {
    let low = 0;
    let high = this.entries.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (isBefore(this.entries[middle].key)) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** As far as `prefix` goes: 0 when the key begins with it. */
function compare(key: Key, prefix: Key): number {
  const place = prefix.findIndex((part, index) => key[index] !== part);
  if (place < 0) return 0;
  return key[place] < prefix[place] ? -1 : 1;
}
