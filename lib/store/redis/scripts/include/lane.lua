-- Lanes and their turns: the words that the operations on them are made of.
-- @include common, contents, epochs

-- How long a rung lane may stay unclaimed before it is offered again, and how long at most that grows.
local RING_GRACE_MS = 1000
local MAX_OFFER_BACKOFF_MS = 5000
-- Before every lane that waits for a worker.
local BEFORE_OTHERS = 0

-- A lane is a row: nextPosition, the fence of the last claim, the id of its head, which is the first open turn; while
-- that runs, its holder and leaseUntil; offers since the last claim and the score in due before the first of them;
-- mode, epochs. The ids of the turns behind the head are a list.
local function lane_key(session_id)
  return key('lane', session_id)
end

local function queue_key(session_id)
  return key('queue', session_id)
end

local function turn_key(id)
  return key('turn', id)
end

-- Of a session without a lane there is nothing in it.
local function read_lane(session_id)
  return read(lane_key(session_id)) or {}
end

-- A hint for whoever waits for the turn.
local function changed(turn_id)
  redis.call('PUBLISH', base .. 'changed', turn_id)
end

-- A turn is a row: what it was accepted with, what changes, and what came of it. nil when it is not there.
local function read_turn(id)
  local turn = read(turn_key(id))
  if turn then turn.id = id end
  return turn
end

-- When a turn was accepted, at which position, and in which session: the first lines of what it was accepted with.
local function place_of(accepted)
  return string.match(accepted, '^(%d+)\n(%d+)\n([^\n]*)')
end

local function session_of(turn)
  local _, _, session_id = place_of(turn.accepted)
  return session_id
end

-- When somebody must look at the lane; nil: not before something changes. Of a lane that runs it may be earlier than
-- its lease ends.
local function attend(session_id, at)
  if at then
    redis.call('ZADD', base .. 'due', at, session_id)
  else
    redis.call('ZREM', base .. 'due', session_id)
  end
end

-- What all lanes are, besides what each of them is; nil: open.
local function mode_of_all()
  return redis.call('HGET', lane_key(''), 'mode') or nil
end

-- Whether a head that nobody runs can be claimed.
local function is_due(head)
  if head.status == 'waiting' then return head.waitUntil ~= nil and tonumber(head.waitUntil) <= now end
  return head.dueAt == nil or tonumber(head.dueAt) <= now
end

local function attention_of(head)
  if head.status == 'waiting' then return head.waitUntil end
  if head.dueAt ~= nil and tonumber(head.dueAt) > now then return head.dueAt end
  return whole(now + RING_GRACE_MS)
end

local function is_lapsed(lane)
  return lane.leaseUntil ~= nil and tonumber(lane.leaseUntil) <= now
end

-- Whether an open turn holds its lane: from its first claim on, also while it is queued again.
local function has_begun(turn)
  return turn.startedAt ~= nil
end

-- Ends an open turn, with further fields and values. The lane is not told: take it out, and follow with rest_lane.
local function end_turn(turn, status, ...)
  local at = turn_key(turn.id)
  redis.call('HDEL', at, 'userMessage', 'epochs', 'dueAt', 'cancelMode', 'waitSignal', 'waitStep', 'waitUntil')
  redis.call('HSET', at, 'status', status, 'settledAt', stamp, ...)
  if turn.eventTtl then redis.call('PEXPIRE', key('events', turn.id), turn.eventTtl) end
  redis.call('ZADD', base .. 'settled', stamp, turn.id)
  changed(turn.id)
end

-- Takes the head out of its lane; the one behind it is the head now.
local function drop_head(session_id, lane)
  lane.head = redis.call('LPOP', queue_key(session_id)) or nil
end

-- In the order of the lane.
local function open_turns(session_id, head)
  if not head then return {} end
  local ids = redis.call('LRANGE', queue_key(session_id), 0, -1)
  table.insert(ids, 1, head)
  return ids
end

-- Removes turns of one session with all that is keyed by them.
local function remove_turns(session_id, turn_ids)
  for _, id in ipairs(turn_ids) do
    redis.call('UNLINK', turn_key(id), key('steps', id), key('signals', id), key('events', id))
    redis.call('ZREM', key('turns', session_id), id)
    redis.call('ZREM', base .. 'settled', id)
  end
end

-- Writes a lane that nobody runs. Says whether to ring: its head is due now.
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

-- The conversation was reset since the turn began.
local function is_forgotten(turn)
  return reset_since(redis.call('HGET', lane_key(session_of(turn)), 'epochs'), turn.epochs, CONVERSATION) ~= nil
end

-- Ends a turn that was asked to stop and that no worker settles; interrupted, what the user said stays.
local function stop_turn(turn, mode)
  -- That of a command is empty.
  if mode == 'interrupt' and turn.userMessage ~= '' and not is_forgotten(turn) then
    append_messages(session_of(turn), turn.id, turn.orchestrator, { turn.userMessage })
  end
  end_turn(turn, 'cancelled')
end

-- Asks the worker of a running turn to stop it. The first mark stays.
local function mark_turn(turn, mode)
  write(turn_key(turn.id), turn, { cancelMode = turn.cancelMode or mode })
  changed(turn.id)
end

-- How a turn that has lost its attempt must end instead of getting another one.
local function end_before_next_attempt(turn)
  if turn.cancelMode then return turn.cancelMode end
  return redis.call('HGET', key('session', session_of(turn)), 'state') == 'expired' and 'cancel' or nil
end

-- Cancels what is queued or waiting; a running turn goes on. Gives the turns' ids.
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

-- The lane that a hold is for, or a refusal: it is no longer the lane's current one.
local function held(session_id, turn_id, fence)
  local lane = read_lane(session_id)
  if lane.leaseUntil and lane.head == turn_id and lane.fence == fence then return lane end
  return nil, refuse('TURN_FENCED', 'session_id', session_id, 'turn_id', turn_id, 'fence', fence)
end

-- As it goes to the client, which has no use for the message of a turn that was never interrupted, nor for its epochs.
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

-- Puts a held turn back into its lane; one that was asked to stop, or whose session expired, ends instead.
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
