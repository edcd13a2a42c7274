import { SCRIPTS } from './redis-scripts.js';

const CALLS = /(?:redis\.call|call_with)\('(\w+)'/g;

/** Every command that a script calls, and that calls a script. */
export const COMMANDS: readonly string[] = [
  ...new Set(['EVALSHA', ...SCRIPTS.flatMap(({ lua }) => [...lua.matchAll(CALLS)].map(([, name]) => name))]),
].sort();

/** Those of the commands (ARGV) that the user may not call on our keys and our channel; KEYS[1] is `{prefix}:`. */
export const FORBIDDEN_COMMANDS = /* lua */ `#!lua flags=no-writes
local key = KEYS[1] .. 'any'
local arguments = { TIME = {}, PUBLISH = { KEYS[1] .. 'changed', '' }, EVALSHA = { 'sha', '1', key } }
local forbidden = {}
for _, command in ipairs(ARGV) do
  if not redis.acl_check_cmd(command, unpack(arguments[command] or { key })) then
    forbidden[#forbidden + 1] = command
  end
end
return forbidden`;
