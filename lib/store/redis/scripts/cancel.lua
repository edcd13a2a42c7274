#!lua
-- TurnLedger.cancel.
-- ARGV[1]: the turn
-- ARGV[2]: the mode
-- ARGV[3]: the messages to keep, joined by SEPARATOR, or ''
-- @include common, lane

local mode, keep = ARGV[2], ARGV[3] ~= '' and ARGV[3] or nil
local turn = read_turn(ARGV[1])
if not turn then return refuse('TURN_NOT_FOUND', 'turn_id', ARGV[1]) end
if turn.settledAt then return { 1, turn_reply(turn), 0 } end
if turn.status == 'running' then
  mark_turn(turn, mode, keep)
  return { 1, turn_reply(turn), 0 }
end
local session_id = session_of(turn)
local lane, notify = read_lane(session_id), 0
turn.keep = keep
stop_turn(turn, has_begun(turn) and mode or 'cancel')
-- Only a change of the head affects the lane: the new head may be due at once.
if lane.head == turn.id then
  drop_head(session_id, lane)
  notify = rest_lane(session_id, lane)
else
  redis.call('LREM', queue_key(session_id), 1, turn.id)
end
return { 1, turn_reply(read_turn(turn.id)), notify }
