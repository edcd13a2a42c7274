-- Shared functions for lanes and their turns.
-- @include common, contents, epochs

-- How long a notified lane may stay unclaimed before it is offered again, and the longest such pause.
local NOTIFY_GRACE_MS = 1000
local MAX_OFFER_BACKOFF_MS = 5000
-- Sorts before every lane that waits for a worker.
local BEFORE_OTHERS = 0

-- A lane is a row with these fields:
-- nextPosition
-- fence: the fence of the last claim
-- head: the id of the first open turn
-- holder, leaseUntil: the claim of the head, while it runs
-- offers: the number of offers since the last claim or renewal
-- firstAttentionAt: the score in `due` before the first of these offers
-- mode, epochs, awaited
-- The ids of the turns behind the head are a list.
local function lane_key(session_id)
  return key('lane', session_id)
end

local function queue_key(session_id)
  return key('queue', session_id)
end

local function turn_key(id)
  return key('turn', id)
end

-- The lane is empty if the session has none.
local function read_lane(session_id)
  return read(lane_key(session_id)) or {}
end

-- Notifies callers that wait for the turn.
local function changed(turn_id)
  redis.call('PUBLISH', base .. 'changed', turn_id)
end

-- Reads a turn: the request, the changing fields, and the outcome. Returns nil if the turn does not exist.
local function read_turn(id)
  local turn = read(turn_key(id))
  if turn then turn.id = id end
  return turn
end

-- Returns the time of acceptance, the position and the session: the first lines of `accepted`.
local function place_of(accepted)
  return string.match(accepted, '^(%d+)\n(%d+)\n([^\n]*)')
end

local function session_of(turn)
  local _, _, session_id = place_of(turn.accepted)
  return session_id
end

-- Sets when the lane is next due; nil: after a change. For a running lane, this may precede the end of its lease.
local function attend(session_id, at)
  if at then
    redis.call('ZADD', base .. 'due', at, session_id)
  else
    redis.call('ZREM', base .. 'due', session_id)
  end
end

-- Returns the mode of all lanes, in addition to the mode of each; nil: open.
local function mode_of_all()
  return redis.call('HGET', lane_key(''), 'mode') or nil
end

-- Returns whether a head that is not running can be claimed.
local function is_due(head)
  if head.status == 'waiting' then return head.waitUntil ~= nil and tonumber(head.waitUntil) <= now end
  return head.dueAt == nil or tonumber(head.dueAt) <= now
end

local function attention_of(head)
  if head.status == 'waiting' then return head.waitUntil end
  if head.dueAt ~= nil and tonumber(head.dueAt) > now then return head.dueAt end
  return whole(now + NOTIFY_GRACE_MS)
end

local function is_lapsed(lane)
  return lane.leaseUntil ~= nil and tonumber(lane.leaseUntil) <= now
end

-- Returns whether an open turn holds its lane. It does from its first claim, even while it is queued again.
local function has_begun(turn)
  return turn.startedAt ~= nil
end

-- Ends an open turn and sets further fields. Does not update the lane: remove the turn, then call rest_lane.
local function end_turn(turn, status, ...)
  local at = turn_key(turn.id)
  redis.call('HDEL', at, 'userMessage', 'epochs', 'dueAt', 'cancelMode', 'keep', 'waitSignal', 'waitStep',
    'waitOthers', 'waitUntil')
  redis.call('HSET', at, 'status', status, 'settledAt', stamp, ...)
  if turn.eventTtl then redis.call('PEXPIRE', key('events', turn.id), turn.eventTtl) end
  redis.call('ZADD', base .. 'settled', stamp, turn.id)
  changed(turn.id)
end

-- Removes the head from its lane. The next turn becomes the head.
local function drop_head(session_id, lane)
  lane.head = redis.call('LPOP', queue_key(session_id)) or nil
end

-- Returns the ids of the open turns, in the order of the lane.
local function open_turns(session_id, head)
  if not head then return {} end
  local ids = redis.call('LRANGE', queue_key(session_id), 0, -1)
  table.insert(ids, 1, head)
  return ids
end

-- Removes turns of one session and all keys of those turns.
local function remove_turns(session_id, turn_ids)
  for _, id in ipairs(turn_ids) do
    redis.call('UNLINK', turn_key(id), key('steps', id), key('signals', id), key('events', id))
    redis.call('ZREM', key('turns', session_id), id)
    redis.call('ZREM', base .. 'settled', id)
  end
end

-- Updates a lane without a running turn. Returns whether to notify workers, because its head is due now.
local function rest_lane(session_id, lane)
  local at, head = lane_key(session_id), lane.head and read_turn(lane.head)
  lane.leaseUntil = nil
  if not head then
    redis.call('HDEL', at, 'head', 'holder', 'leaseUntil', 'offers', 'firstAttentionAt')
    redis.call('ZREM', base .. 'lanes', session_id)
    attend(session_id, nil)
    return 0
  end
  redis.call('HDEL', at, 'holder', 'leaseUntil', 'offers', 'firstAttentionAt')
  redis.call('HSET', at, 'head', lane.head)
  attend(session_id, attention_of(head))
  return is_due(head) and 1 or 0
end

-- Returns whether the conversation was reset after the turn started.
local function is_forgotten(turn)
  return reset_since(redis.call('HGET', lane_key(session_of(turn)), 'epochs'), turn.epochs, CONVERSATION) ~= nil
end

-- Ends a cancelled turn without a worker. The mode interrupt keeps the user's message and the messages to keep.
local function stop_turn(turn, mode)
  -- A command stores an empty message.
  if mode == 'interrupt' and turn.userMessage ~= '' and not is_forgotten(turn) then
    local said = { turn.userMessage }
    for message in string.gmatch(turn.keep or '', '[^' .. SEPARATOR .. ']+') do said[#said + 1] = message end
    append_messages(session_of(turn), turn.id, turn.orchestrator, said)
  end
  end_turn(turn, 'cancelled')
end

-- Marks a running turn, so that its worker stops it. An existing mark is kept.
local function mark_turn(turn, mode, keep)
  if not turn.cancelMode then write(turn_key(turn.id), turn, { cancelMode = mode, keep = keep }) end
  changed(turn.id)
end

-- Returns how a turn without an attempt must end, or nil if it may have another attempt.
local function end_before_next_attempt(turn)
  if turn.cancelMode then return turn.cancelMode end
  return redis.call('HGET', key('session', session_of(turn)), 'state') == 'expired' and 'cancel' or nil
end

-- Cancels queued and waiting turns. A running turn continues. Returns the ids of the cancelled turns.
local function cancel_open_turns(session_id)
  local lane = read_lane(session_id)
  local cancelled = open_turns(session_id, lane.head)
  if lane.leaseUntil then table.remove(cancelled, 1) end
  for _, id in ipairs(cancelled) do end_turn(read_turn(id), 'cancelled') end
  redis.call('UNLINK', queue_key(session_id))
  if lane.head and not lane.leaseUntil then
    lane.head = nil
    rest_lane(session_id, lane)
  end
  return cancelled
end

-- Stores a step of a turn; a stored step keeps its first value. A new step is progress: losses count from here on.
local function store_step(turn_id, step, value)
  local at = key('steps', turn_id)
  if redis.call('HSETNX', at, step, value) == 1 then redis.call('HDEL', turn_key(turn_id), 'lostSinceStep') end
end

-- Returns the lane of a hold, or a refusal if the hold is no longer current.
local function held(session_id, turn_id, fence)
  local lane = read_lane(session_id)
  if lane.leaseUntil and lane.head == turn_id and lane.fence == fence then return lane end
  return nil, refuse('TURN_FENCED', 'session_id', session_id, 'turn_id', turn_id, 'fence', fence)
end

-- Returns the turn for the client, without the fields that only scripts use: the user's message and the epochs.
local function turn_reply(turn)
  local fields = {}
  for field, value in pairs(turn) do
    if field ~= 'userMessage' and field ~= 'epochs' then
      fields[#fields + 1] = field
      fields[#fields + 1] = value
    end
  end
  return fields
end

-- Returns a held turn to its lane. If it was asked to stop, or its session expired, it ends instead.
local function put_back(session_id, lane, turn, changes)
  local mode = end_before_next_attempt(turn)
  if mode then
    stop_turn(turn, mode)
    turn = read_turn(turn.id)
    drop_head(session_id, lane)
  else
    write(turn_key(turn.id), turn, changes)
    changed(turn.id)
  end
  rest_lane(session_id, lane)
  return { 1, turn_reply(turn) }
end
