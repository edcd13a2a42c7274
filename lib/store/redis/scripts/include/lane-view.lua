-- @include lane

local HEAD = {
  'orchestrator', 'status', 'failures', 'lost', 'cancelMode', 'waitSignal', 'waitUntil', 'accepted', 'startedAt',
  'dueAt',
}
local ACCEPTED = 8

local function accepted_at(accepted)
  return (place_of(accepted))
end

-- Returns the view of a lane, which may not exist: the lane, the number of open turns, the head, and when the second
-- turn was accepted.
local function lane_view(session_id)
  local lane = redis.call('HMGET', lane_key(session_id), 'mode', 'holder', 'leaseUntil', 'head')
  local id = table.remove(lane)
  if not id then return { session_id, lane, 0, false, false } end
  local head = redis.call('HMGET', turn_key(id), unpack(HEAD))
  head[ACCEPTED] = accepted_at(head[ACCEPTED])
  table.insert(head, 1, id)
  local behind = redis.call('LINDEX', queue_key(session_id), 0)
  return {
    session_id, lane, 1 + redis.call('LLEN', queue_key(session_id)), head,
    behind and accepted_at(redis.call('HGET', turn_key(behind), 'accepted')) or false,
  }
end
