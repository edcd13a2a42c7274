#!lua
-- @include common, lane, spending

local lane, fenced = held(ARGV[1], ARGV[2], ARGV[3])
if fenced then return fenced end
record_spending(lane, ARGV[2], 8)
local at = key('steps', ARGV[2])
if ARGV[6] and ARGV[6] ~= '' then redis.call('HSETNX', at, ARGV[6], ARGV[7]) end
redis.call('HSETNX', at, ARGV[4], ARGV[5])
return { 1, redis.call('HGET', at, ARGV[4]) }
