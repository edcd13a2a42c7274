#!lua
-- TurnLedger.wait. Returns the turn, and the payload if the signal arrived before.
-- ARGV[1]: the session
-- ARGV[2]: the turn
-- ARGV[3]: the fence of the hold
-- ARGV[4]: the name of the signal
-- ARGV[5]: the step, as stepText returns it
-- ARGV[6]: the timeout in milliseconds, or ''
-- ARGV[7]: the other signals as JSON, or ''
-- ARGV[8..]: the arguments of record_spending
-- @include common, lane, spending

local signal, step, timeout_ms, others = ARGV[4], ARGV[5], tonumber(ARGV[6]), ARGV[7]
local lane, fenced = held(ARGV[1], ARGV[2], ARGV[3])
if fenced then return fenced end
local turn = read_turn(ARGV[2])
local early = redis.call('HGET', key('signals', turn.id), signal)
if early then
  store_step(turn.id, step, '{"received":true,"payload":' .. early .. '}')
  return { 1, turn_reply(turn), early }
end
record_spending(lane, turn.id, 8, turn)
return put_back(ARGV[1], lane, turn, {
  status = 'waiting', waitSignal = signal, waitStep = step, waitOthers = others ~= '' and others or false,
  waitUntil = timeout_ms and now + timeout_ms or false,
})
