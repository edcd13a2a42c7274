import { createHash } from 'node:crypto';
import { COMMON } from './common.js';

/** A Lua script that Redis keeps by the hash of its text. */
export interface Script {
  readonly name: string;
  readonly lua: string;
  readonly sha: string;
  readonly writes: boolean;
}

/**
 * A script that writes, which Redis refuses as a whole when it is out of memory.
 * @param parts of which it is made, in the order of what they need of each other
 * @param steps of its body; a call that ends before a step does not make the words that only that one needs
 */
export function script(name: string, parts: readonly string[], ...steps: readonly string[]): Script {
  return compose(name, '#!lua', parts, steps);
}

/** A script that makes room, or keeps what is there, so that Redis runs it also when it is out of memory. */
export function thrifty(name: string, parts: readonly string[], body: string): Script {
  return compose(name, '#!lua flags=allow-oom', parts, [body]);
}

/** A script that only reads, which Redis also runs when it is out of memory. */
export function query(name: string, parts: readonly string[], body: string): Script {
  return { ...compose(name, '#!lua flags=no-writes', parts, [body]), writes: false };
}

function compose(name: string, shebang: string, parts: readonly string[], steps: readonly string[]): Script {
  let words = [COMMON, ...parts].flatMap(wordsOf);
  const texts = [`${shebang}\n-- nestjs-agent-sessions: ${name}`];
  for (const step of steps) {
    const needed = wordsFor(step, words);
    words = words.filter((word) => !needed.includes(word));
    texts.push(...needed.map(({ lua }) => lua), step.trim());
  }
  const lua = texts.join('\n');
  return { name, lua, sha: createHash('sha1').update(lua).digest('hex'), writes: true };
}

/** What stands in the first column of a part: `local` begins a word, after the comments on it. */
const WORD = /^(?:--.*\n)*local (?:function )?([\w, ]+?)(?: =|\().*\n(?:(?!--|local ).*\n)*/gm;

interface Word {
  readonly names: readonly string[];
  readonly lua: string;
}

function wordsOf(part: string): Word[] {
  return [...`${part.trim()}\n`.matchAll(WORD)].map(([lua, names]) => ({ names: names.split(', '), lua: lua.trim() }));
}

/** Those that a text needs, and no more: Redis makes every one of them anew in each call, and keeps them for each script. */
function wordsFor(text: string, words: readonly Word[]): Word[] {
  return words.reduceRight<Word[]>((needed, word) => (isUsed(word, text, needed) ? [word, ...needed] : needed), []);
}

function isUsed({ names }: Word, text: string, words: readonly Word[]): boolean {
  const use = new RegExp(`\\b(?:${names.join('|')})\\b`);
  return use.test(text) || words.some(({ lua }) => use.test(lua));
}
