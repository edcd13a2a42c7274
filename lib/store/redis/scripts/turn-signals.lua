#!lua flags=no-writes
-- @include common

return { 1, redis.call('HGETALL', key('signals', ARGV[1])) }
