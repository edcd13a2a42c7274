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
 */
export function script(name: string, parts: readonly string[], body: string): Script {
  return compose(name, '#!lua', parts, body);
}

/** A script that makes room, or keeps what is there, so that Redis runs it also when it is out of memory. */
export function thrifty(name: string, parts: readonly string[], body: string): Script {
  return compose(name, '#!lua flags=allow-oom', parts, body);
}

/** A script that only reads, which Redis also runs when it is out of memory. */
export function query(name: string, parts: readonly string[], body: string): Script {
  return { ...compose(name, '#!lua flags=no-writes', parts, body), writes: false };
}

function compose(name: string, shebang: string, parts: readonly string[], body: string): Script {
  const words = wordsFor(body, [COMMON, ...parts].flatMap(wordsOf));
  const lua = [`${shebang}\n-- nestjs-agent-sessions: ${name}`, ...words, body.trim()].join('\n');
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

/** Those that the body needs, and no more: Redis makes every one of them anew in each call, and keeps them for each script. */
function wordsFor(body: string, words: readonly Word[]): string[] {
  return words.reduceRight<string[]>(
    (needed, { names, lua }) => (names.some((name) => isUsed(name, [...needed, body])) ? [lua, ...needed] : needed),
    [],
  );
}

function isUsed(name: string, texts: readonly string[]): boolean {
  const use = new RegExp(`\\b${name}\\b`);
  return texts.some((text) => use.test(text));
}
