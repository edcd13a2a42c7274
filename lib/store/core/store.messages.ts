/** The messages of store-failure.ts and refusals.ts. */
export const storeMessages = {
  /** @param detail the end of the sentence, see `StoreFailure` */
  rejected: (store: string, detail: string): string => `The ${store} store rejects a value${detail}.`,

  /** @param detail as for `rejected` */
  failed: (store: string, detail: string, cure: string): string => `The ${store} store failed${detail}. ${cure}`,

  notOpen: (store: string): string => `The ${store} is not open. Use it only while the application runs.`,

  unknownRefusal: (code: string): string =>
    `The store answered with an unknown refusal: ${code}. Update this process if others are newer, and ` +
    'remove settings of its client that change replies.',
};
