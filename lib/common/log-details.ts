import { hashed } from './digests.js';

/** The details that logs show besides classes, codes, stacks, and names of the application's code (DAY-02). */
export interface LogDetails {
  /** Messages of errors, which may contain user input. */
  readonly messages: boolean;
  /** Ids of sessions, turns and users. If false, their hashes. */
  readonly ids: boolean;
}

type GivenDetails = Partial<LogDetails>;

/** The options `logging` of the running applications of this process, which share Nest's logger. */
export const runningApplications = new Set<GivenDetails>();

/** Returns what logs may show now: what every running application shows. By default, this is nothing in production. */
export function logDetails(): LogDetails {
  const isDefault = process.env.NODE_ENV !== 'production';
  const all: readonly GivenDetails[] = runningApplications.size === 0 ? [{}] : [...runningApplications];
  return {
    messages: all.every(({ messages = isDefault }) => messages),
    ids: all.every(({ ids = isDefault }) => ids),
  };
}

/** Applies the option of an application. @returns a function that the application calls when it has stopped */
export function useLogDetails(given: GivenDetails): () => void {
  const details = { ...given };
  runningApplications.add(details);
  return () => void runningApplications.delete(details);
}

/** Returns an id for a log: the id, or its hash (NST-22). */
export function loggedId(id: string): string {
  return logDetails().ids ? id : hashed(id);
}
