#!lua flags=no-writes
-- @include common

return { 1, redis.call('HGETALL', key('steps', ARGV[1])) }
