#!lua
-- @include common, lane, spending

local lane, fenced = held(ARGV[1], ARGV[2], ARGV[3])
if fenced then return fenced end
record_spending(lane, ARGV[2], 6)
store_step(ARGV[2], ARGV[4], ARGV[5])
return { 1, redis.call('HGET', key('steps', ARGV[2]), ARGV[4]) }
