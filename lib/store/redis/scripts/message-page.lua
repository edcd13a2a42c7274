#!lua flags=no-writes
-- ARGV: session, the position to begin after, limit.
-- @include common

local after, limit = ARGV[2], tonumber(ARGV[3])
return { 1, limit > 0 and redis.call('LRANGE', key('messages', ARGV[1]), after, after + limit - 1) or {} }
