#!lua
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
