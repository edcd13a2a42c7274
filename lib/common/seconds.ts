import { isIntegerWithin } from './check-input.js';

/** A hundred years. */
export const MAX_SECONDS = 3_153_600_000;
/** The allowed values of an option in seconds. */
export const SECONDS_RULE = `must be an integer from 1 to ${MAX_SECONDS}.`;
export const SECONDS_OR_NEVER_RULE = `must be "never" or an integer from 1 to ${MAX_SECONDS}.`;

export function isSeconds(value: unknown): value is number {
  return isIntegerWithin(value, 1, MAX_SECONDS);
}

/** Parses a number of seconds or a string of digits. Returns null for anything else. */
export function toSeconds(value: unknown): number | null {
  const seconds = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value;
  return isSeconds(seconds) ? seconds : null;
}

/** Converts seconds to milliseconds; undefined stays undefined. */
export function toMs(seconds: number | undefined): number | undefined {
  return seconds === undefined ? undefined : seconds * 1000;
}
