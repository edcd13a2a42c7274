#!lua flags=allow-oom
-- TurnLedger.purgeSettled.
-- ARGV[1]: olderThanMs
-- ARGV[2]: the maximum number of turns
-- @include common, lane

local ids = redis.call('ZRANGE', base .. 'settled', '-inf', '(' .. now - ARGV[1], 'BYSCORE', 'LIMIT', 0, ARGV[2])
for _, id in ipairs(ids) do
  local accepted, idempotency_key = unpack(redis.call('HMGET', turn_key(id), 'accepted', 'idempotencyKey'))
  local session_id = accepted and session_of({ accepted = accepted }) or ''
  if idempotency_key then redis.call('HDEL', key('keys', session_id), idempotency_key) end
  remove_turns(session_id, { id })
end
return { 1, #ids }
