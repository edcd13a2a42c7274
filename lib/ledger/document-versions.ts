/**
 * Generates versions of documents for a store in one process. The first version of a document is the clock in
 * microseconds, and higher than every version issued before. A document that is deleted and created again therefore
 * never has an earlier version (FIX-40).
 */
export class DocumentVersions {
  private highest = 0;

  /**
   * @param before the current version of the document; 0 if it does not exist
   * @param now milliseconds since 1970 by the store's clock
   */
  next(before: number, now: number): number {
    const version = before > 0 ? before + 1 : Math.max(this.highest + 1, now * 1000);
    this.highest = Math.max(this.highest, version);
    return version;
  }
}
