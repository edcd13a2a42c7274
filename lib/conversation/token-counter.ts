import { loadPeer } from '../common/load-peer.js';
import { SessionsConfigurationError } from '../common/sessions.error.js';

/** How many tokens a text takes. */
export type TokenCounter = (text: string) => number;

/** A tokenizer takes time that grows with the square of what it must not split: a run of 100,000 letters takes minutes. */
const MAX_PIECE = 256;

/**
 * Counts as OpenAI's newer models do (o200k_base), by the package gpt-tokenizer, without asking anybody. Long texts are counted
 * in pieces, so that no text keeps the process busy; where there is no white space to cut at, the count may be one more in 256
 * characters.
 * @param wantedBy what needs it, for the error. @throws SessionsConfigurationError when the package is missing
 */
export async function loadTokenCounter(wantedBy: string): Promise<TokenCounter> {
  const { countTokens } = await loadPeer('gpt-tokenizer', () => import('gpt-tokenizer/encoding/o200k_base')).catch(
    (cause: unknown) => {
      if (!(cause instanceof SessionsConfigurationError)) throw cause;
      throw new SessionsConfigurationError(
        `${wantedBy} counts tokens. Install the package that does: npm install gpt-tokenizer; or give a counter of your own ` +
          'to the option tokenCounter of SessionsModule.forRoot().',
        { cause },
      );
    },
  );
  // Users may write what is a mark of the model's own: it is text like any other.
  const options = { disallowedSpecial: new Set<string>() };
  return (text) => piecesOf(text).reduce((sum, piece) => sum + countTokens(piece, options), 0);
}

/** Cuts before white space where it can: there the pieces count what the whole does. */
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
  // Never between the halves of one character.
  return /[\uDC00-\uDFFF]/.test(text[to]) ? to - 1 : to;
}
