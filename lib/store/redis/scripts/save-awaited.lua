#!lua
-- @include lane

local _, fenced = held(ARGV[1], ARGV[2], ARGV[3])
if fenced then return fenced end
redis.call('HSET', lane_key(ARGV[1]), 'awaited', ARGV[4])
return { 1 }
