/** The messages of method-mark.ts, nest-providers.ts and server-place.ts, and of `UnreadableRecordError`. */
export const commonMessages = {
  staticMethod: (decorator: string, method: string): string =>
    `${decorator} is on ${method}, which is static. Expected a method of the instance.`,

  notAMethod: (method: string, decorator: string): string =>
    `${method} has ${decorator}, but it is not a method. Remove the decorator that has replaced it by an accessor.`,

  /** @param option the path of the option that must be a URL */
  urlNotSet: (option: string, isEmpty: boolean): string =>
    `${option} is ${isEmpty ? 'empty' : 'undefined'}. Use a URL, or omit the option. Check that its environment ` +
    'variable is set.',

  /** @param versions of the rules: of the record, and the latest that this process supports */
  newerRecord: (
    kind: string,
    recordId: string,
    versions: { readonly written: number; readonly known: number },
  ): string =>
    `A newer version of nestjs-agent-sessions wrote the ${kind} ${JSON.stringify(recordId)}: it has rules version ` +
    `${versions.written}, and this process supports versions up to ${versions.known}. Update this process.`,

  notASingleton: (provider: string): string =>
    `${provider} is request-scoped or transient, or injects a request-scoped provider. It must be a singleton, because ` +
    'it is also used outside of requests.',

  corruptRecord: (kind: string, recordId: string): string =>
    `The stored ${kind} ${JSON.stringify(recordId)} is corrupt. Repair or delete the record.`,
};
