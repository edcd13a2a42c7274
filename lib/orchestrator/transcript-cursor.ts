import { isFields } from '../common/json.js';
import { InvalidInputError } from '../common/sessions.error.js';

/** The positions down to which earlier requests have read a conversation backwards. */
export interface TranscriptCursor {
  /** Turns from this position on were read; 0: all turns. */
  readonly turn: number;
  /** Messages from this position on were read; 0: all messages. */
  readonly message: number;
  readonly takenBack: TakenBackFrom;
}

/** By orchestrator: the position of the first turn that later turns have replaced or undone. */
export type TakenBackFrom = Readonly<Record<string, number>>;

/** The cursor of the first request, which reads the latest page. */
export const LATEST: TranscriptCursor = { turn: Infinity, message: Infinity, takenBack: {} };

/** @param cursor not {@link LATEST} */
export function formatCursor({ turn, message, takenBack }: TranscriptCursor): string {
  return Buffer.from(JSON.stringify([turn, message, takenBack])).toString('base64url');
}

/** @throws InvalidInputError */
export function parseCursor(text: string): TranscriptCursor {
  const [turn, message, takenBack] = parsed(text);
  if (isPosition(turn) && isPosition(message) && isTakenBack(takenBack)) return { turn, message, takenBack };
  throw new InvalidInputError('before', 'must be the `before` of an earlier response, unchanged.');
}

function parsed(text: string): readonly unknown[] {
  try {
    const value: unknown = JSON.parse(Buffer.from(text, 'base64url').toString());
    return Array.isArray(value) ? value : [];
  } catch {
    return [];
  }
}

function isTakenBack(value: unknown): value is TakenBackFrom {
  return isFields(value) && Object.values(value).every(isPosition);
}

function isPosition(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
