import { SCRIPTS } from './index.js';

/** Every command that a script calls. */
export const COMMANDS: readonly string[] = [
  ...new Set(
    SCRIPTS.flatMap(({ lua }) => [...lua.matchAll(/(?:redis\.call|call_with)\('(\w+)'/g)].map(([, name]) => name)),
  ),
].sort();

/** Those of the commands (ARGV) that the user may not call on our keys and our channel; KEYS[1] is `{prefix}:`. */
export const FORBIDDEN_COMMANDS = /* lua */ `#!lua flags=no-writes
local ARGUMENTS = { TIME = {}, PUBLISH = { KEYS[1] .. 'changed', '' } }
local forbidden = {}
for _, command in ipairs(ARGV) do
  local arguments = ARGUMENTS[command] or { KEYS[1] .. 'any', '0', '0' }
  if not redis.acl_check_cmd(command, unpack(arguments)) then forbidden[#forbidden + 1] = command end
end
return forbidden`;
