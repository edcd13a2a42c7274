#!lua flags=no-writes
-- TurnLedger.awaited. Returns the fields of the lane from which the client reads the awaited turns.
-- ARGV[1]: the session
-- @include lane

local lane = redis.call('HMGET', lane_key(ARGV[1]), 'leaseUntil', 'head', 'fence', 'awaited')
return { 1, lane }
