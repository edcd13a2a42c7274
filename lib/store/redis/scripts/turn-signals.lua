#!lua flags=no-writes
-- TurnLedger.signals.
-- ARGV[1]: the turn
-- @include common

return { 1, redis.call('HGETALL', key('signals', ARGV[1])) }
