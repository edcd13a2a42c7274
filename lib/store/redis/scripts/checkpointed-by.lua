#!lua flags=no-writes
-- @include common

return { 1, redis.call('SMEMBERS', key('orchestrators', ARGV[1])) }
