#!lua flags=no-writes
-- TurnEventLog.read.
-- ARGV[1]: the turn
-- ARGV[2]: the offset after which to start
-- ARGV[3]: the offset whose batch is the last one to return
-- @include common

local at, after, enough = key('events', ARGV[1]), ARGV[2], ARGV[3]
local batches = {}
local function add(entries)
  for _, entry in ipairs(entries) do
    batches[#batches + 1] = string.match(entry[1], '^%d+')
    batches[#batches + 1] = entry[2][6]
  end
end
add(redis.call('XRANGE', at, '(' .. after .. '-0', '(' .. enough .. '-0'))
add(redis.call('XRANGE', at, enough .. '-0', '+', 'COUNT', 1))
return { 1, batches }
