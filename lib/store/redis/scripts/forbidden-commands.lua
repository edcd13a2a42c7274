#!lua flags=no-writes
-- Returns the commands that the user may not call on our keys and our channel. KEYS[1] is `{prefix}:`.
-- ARGV[1..]: the commands

local key = KEYS[1] .. 'any'
local arguments = { TIME = {}, PUBLISH = { KEYS[1] .. 'changed', '' }, EVALSHA = { 'sha', '1', key } }
local forbidden = {}
for _, command in ipairs(ARGV) do
  if not redis.acl_check_cmd(command, unpack(arguments[command] or { key })) then
    forbidden[#forbidden + 1] = command
  end
end
return forbidden
