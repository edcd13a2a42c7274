#!lua
-- @include common, lane, spending

local lane, fenced = held(ARGV[1], ARGV[2], ARGV[3])
if fenced then return fenced end
record_spending(lane, ARGV[2], 8)
if ARGV[6] and ARGV[6] ~= '' then store_step(ARGV[2], ARGV[6], ARGV[7]) end
store_step(ARGV[2], ARGV[4], ARGV[5])
return { 1, redis.call('HGET', key('steps', ARGV[2]), ARGV[4]) }
