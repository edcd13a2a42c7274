#!lua flags=no-writes
-- @include lane

local lane = redis.call('HMGET', lane_key(ARGV[1]), 'leaseUntil', 'head', 'fence', 'awaited')
return { 1, lane }
