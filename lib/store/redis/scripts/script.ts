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
  const lua = [`${shebang}\n-- nestjs-agent-sessions: ${name}`, COMMON, ...parts, body]
    .map((part) => part.trim())
    .join('\n');
  return { name, lua, sha: createHash('sha1').update(lua).digest('hex'), writes: true };
}
