import { loadPeer } from '../common/load-peer.js';
import { SessionsConfigurationError } from '../common/sessions.error.js';
import { compactionMessages } from './compaction.messages.js';

/** Returns the number of tokens of a string. */
export type TokenCounter = (text: string) => number;

/**
 * The maximum length that is tokenized at once. The time of a tokenizer grows with the square of an unbroken run:
 * 100,000 letters take minutes.
 */
const MAX_PIECE = 256;

/**
 * Loads a counter for OpenAI's newer models (o200k_base) from the package gpt-tokenizer, which works locally. Long
 * strings are counted in pieces, so that they do not block the process. Where they have no white space, the count may
 * exceed the exact one by one token per 256 characters.
 * @param wantedBy the feature that needs it, for the error
 * @throws SessionsConfigurationError if the package is missing
 */
export async function loadTokenCounter(wantedBy: string): Promise<TokenCounter> {
  const { countTokens } = await loadPeer('gpt-tokenizer', () => import('gpt-tokenizer/encoding/o200k_base')).catch(
    (cause: unknown) => {
      if (!(cause instanceof SessionsConfigurationError)) throw cause;
      throw new SessionsConfigurationError(compactionMessages.noTokenCounter(wantedBy), { cause });
    },
  );
  // Users may write the model's special tokens. They count as ordinary text.
  const options = { disallowedSpecial: new Set<string>() };
  return (text) => piecesOf(text).reduce((sum, piece) => sum + countTokens(piece, options), 0);
}

/** Splits before white space if possible: there the counts of the pieces add up to the exact count. */
export function piecesOf(text: string, size = MAX_PIECE): string[] {
  const pieces: string[] = [];
  for (let start = 0; start < text.length;) {
    const end = text.length - start <= size ? text.length : cutBetween(text, start + size / 2, start + size);
    pieces.push(text.slice(start, end));
    start = end;
  }
  return pieces;
}

function cutBetween(text: string, from: number, to: number): number {
  for (let cut = to; cut > from; cut -= 1) {
    if (text[cut] === ' ' && text[cut - 1] !== ' ') return cut;
  }
  // Never split a surrogate pair.
  return /[\uDC00-\uDFFF]/.test(text[to]) ? to - 1 : to;
}
