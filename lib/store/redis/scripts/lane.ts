import { EPOCHS } from './epochs.js';

/** Lanes and their turns: the words that the operations on them are made of. Needs CONTENTS. */
export const LANE = /* lua */ `
${EPOCHS}
-- How long a rung lane may stay unclaimed before it is offered again, and how long at most that grows.
local RING_GRACE_MS = 1000
local MAX_OFFER_BACKOFF_MS = 5000

-- A hint for whoever waits for the turn.
local function changed(turn_id)
  redis.call('PUBLISH', base .. 'changed', turn_id)
end

-- The open turns of a lane by position; the first one is the head.
local function open_key(session_id)
  return key('open', session_id)
end

local function head_of(session_id)
  local first = redis.call('ZRANGE', open_key(session_id), 0, 0)[1]
  return first and read(key('turn', first))
end

-- When somebody must look at the lane; nil: not before something changes.
local function attend(session_id, at)
  if at then
    redis.call('ZADD', base .. 'due', at, session_id)
  else
    redis.call('ZREM', base .. 'due', session_id)
  end
end

-- A claim gives a fence that is at least the clock, so that a lane made anew never accepts an older worker.
local function new_lane(session_id)
  redis.call('HSET', key('lane', session_id), 'nextPosition', 1, 'fence', 0)
  return { nextPosition = 1, fence = 0 }
end

-- What all lanes are, besides what each of them is; nil: open.
local function mode_of_all()
  return redis.call('HGET', key('lane', ''), 'mode') or nil
end

-- Whether a lane gives out no turn. One that is paused itself is not offered again until it is opened.
local function is_paused(session_id, lane)
  if lane.mode ~= 'paused' then return mode_of_all() == 'paused' end
  attend(session_id, nil)
  return true
end

-- Whether a head that nobody runs can be claimed.
local function is_due(head)
  if head.status == 'waiting' then return head.waitUntil ~= nil and tonumber(head.waitUntil) <= now end
  return head.dueAt == nil or tonumber(head.dueAt) <= now
end

local function attention_of(head)
  if head.status == 'waiting' then return head.waitUntil end
  if head.dueAt ~= nil and tonumber(head.dueAt) > now then return head.dueAt end
  return now + RING_GRACE_MS
end

local function is_lapsed(lane)
  return lane.leaseUntil ~= nil and tonumber(lane.leaseUntil) <= now
end

local function is_terminal(turn)
  return turn.settledAt ~= nil
end

-- Whether an open turn holds its lane: from its first claim on, also while it is queued again.
local function has_begun(turn)
  return turn.startedAt ~= nil
end

-- Ends an open turn. The lane is not told: follow with rest_lane.
local function end_turn(turn, status, changes)
  local ended = changes or {}
  ended.status = status
  ended.settledAt = now
  for _, field in ipairs({ 'dueAt', 'cancelMode', 'waitSignal', 'waitStep', 'waitUntil', 'userMessage', 'epochs' }) do
    ended[field] = false
  end
  write(key('turn', turn.id), turn, ended)
  if turn.eventTtl then redis.call('PEXPIRE', key('events', turn.id), turn.eventTtl) end
  redis.call('ZREM', open_key(turn.sessionId), turn.id)
  redis.call('ZADD', base .. 'settled', now, turn.id)
  changed(turn.id)
end

-- Removes turns of one session with all that is keyed by them.
local function remove_turns(session_id, turn_ids)
  for _, id in ipairs(turn_ids) do
    redis.call('UNLINK', key('turn', id), key('steps', id), key('signals', id), key('events', id))
    redis.call('ZREM', key('turns', session_id), id)
    redis.call('ZREM', base .. 'settled', id)
  end
end

-- Writes a lane that nobody runs. Says whether to ring: its head is due now.
local function rest_lane(session_id, lane)
  local head = head_of(session_id)
  if not head then redis.call('ZREM', base .. 'lanes', session_id) end
  write(key('lane', session_id), lane, { runningTurn = false, holder = false, leaseUntil = false, offers = false })
  attend(session_id, head and attention_of(head))
  return head and is_due(head) and 1 or 0
end

-- The conversation was reset since the turn began.
local function is_forgotten(turn)
  return reset_since(read(key('lane', turn.sessionId)), turn, CONVERSATION) ~= nil
end

-- Ends a turn that was asked to stop and that no worker settles; interrupted, what the user said stays.
local function stop_turn(turn, mode)
  -- That of a command is empty.
  if mode == 'interrupt' and turn.userMessage ~= '' and not is_forgotten(turn) then
    append_messages(turn.sessionId, turn.id, turn.orchestrator, { turn.userMessage })
  end
  end_turn(turn, 'cancelled')
end

-- Asks the worker of a running turn to stop it. The first mark stays.
local function mark_turn(turn, mode)
  write(key('turn', turn.id), turn, { cancelMode = turn.cancelMode or mode })
  changed(turn.id)
end

-- How a turn that has lost its attempt must end instead of getting another one.
local function end_before_next_attempt(turn)
  if turn.cancelMode then return turn.cancelMode end
  return redis.call('HGET', key('session', turn.sessionId), 'state') == 'expired' and 'cancel' or nil
end

-- Cancels what is queued or waiting; a running turn goes on. Gives the turns' ids.
local function cancel_open_turns(session_id)
  local lane, cancelled = read(key('lane', session_id)), {}
  if not lane then return cancelled end
  for _, id in ipairs(redis.call('ZRANGE', open_key(session_id), 0, -1)) do
    if id ~= lane.runningTurn then
      end_turn(read(key('turn', id)), 'cancelled')
      cancelled[#cancelled + 1] = id
    end
  end
  if not lane.runningTurn then rest_lane(session_id, lane) end
  return cancelled
end

-- The lane and the turn that a hold is for, or a refusal: it is no longer the lane's current one.
local function held(session_id, turn_id, fence, known_turn)
  local lane, turn = read(key('lane', session_id)), known_turn or read(key('turn', turn_id))
  if lane and turn and lane.runningTurn == turn_id and lane.fence == fence then return lane, turn end
  return nil, nil, refuse('TURN_FENCED', 'session_id', session_id, 'turn_id', turn_id, 'fence', fence)
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
local function put_back(lane, turn, changes)
  local mode = end_before_next_attempt(turn)
  if mode then
    stop_turn(turn, mode)
  else
    write(key('turn', turn.id), turn, changes)
    changed(turn.id)
  end
  rest_lane(turn.sessionId, lane)
  return { 1, turn_reply(turn) }
end
`;
