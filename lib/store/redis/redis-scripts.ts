import { createHash } from 'node:crypto';
import * as texts from './scripts/texts.js';

/** A Lua script, which Redis caches by its SHA-1 hash. */
export interface Script {
  readonly lua: string;
  readonly sha: string;
  readonly writes: boolean;
}

export const SCRIPTS = scripts(texts);

function scripts<Name extends string>(texts: Readonly<Record<Name, string>>): Readonly<Record<Name, Script>> {
  const scripts = {} as Record<Name, Script>;
  for (const name in texts) scripts[name] = scriptOf(texts[name]);
  return scripts;
}

function scriptOf(lua: string): Script {
  return { lua, sha: createHash('sha1').update(lua).digest('hex'), writes: !lua.startsWith('#!lua flags=no-writes') };
}
