#!lua
-- @include common, lane

local mode = ARGV[2]
local turn = read_turn(ARGV[1])
if not turn then return refuse('TURN_NOT_FOUND', 'turn_id', ARGV[1]) end
if turn.settledAt then return { 1, turn_reply(turn), 0 } end
if turn.status == 'running' then
  mark_turn(turn, mode)
  return { 1, turn_reply(turn), 0 }
end
local session_id = session_of(turn)
local lane, ring = read_lane(session_id), 0
stop_turn(turn, turn.status == 'waiting' and mode or 'cancel')
-- Behind the head nothing changes for the lane; a new head may be due at once.
if lane.head == turn.id then
  drop_head(session_id, lane)
  ring = rest_lane(session_id, lane)
else
  redis.call('LREM', queue_key(session_id), 1, turn.id)
end
return { 1, turn_reply(read_turn(turn.id)), ring }
