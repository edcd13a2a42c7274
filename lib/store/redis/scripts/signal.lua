#!lua
-- TurnLedger.signal.
-- ARGV[1]: the turn
-- ARGV[2]: the name of the signal
-- ARGV[3]: the payload as JSON
-- @include common, lane

local name, payload = ARGV[2], ARGV[3]
local turn = read_turn(ARGV[1])
if not turn then return refuse('TURN_NOT_FOUND', 'turn_id', ARGV[1]) end
local signals_key = key('signals', turn.id)
if redis.call('HEXISTS', signals_key, name) == 1 then return { 1, turn_reply(turn), 0, 0 } end
if turn.settledAt then return refuse('TURN_SETTLED', 'turn', turn_reply(turn)) end

redis.call('HSET', signals_key, name, payload)
if turn.status ~= 'waiting' or turn.waitSignal ~= name then return { 1, turn_reply(turn), 1, 0 } end
store_step(turn.id, turn.waitStep, '{"received":true,"payload":' .. payload .. '}')
write(turn_key(turn.id), turn, { status = 'queued', waitSignal = false, waitStep = false, waitUntil = false })
changed(turn.id)
local session_id = session_of(turn)
return { 1, turn_reply(turn), 1, rest_lane(session_id, read_lane(session_id)) }
