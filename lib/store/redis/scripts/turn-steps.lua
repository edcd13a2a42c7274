#!lua flags=no-writes
-- TurnLedger.steps.
-- ARGV[1]: the turn
-- @include common

return { 1, redis.call('HGETALL', key('steps', ARGV[1])) }
