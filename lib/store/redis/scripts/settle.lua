#!lua
-- TurnLedger.settle.
-- ARGV[1]: the session
-- ARGV[2]: the turn
-- ARGV[3]: the fence of the hold
-- ARGV[4]: the status
-- ARGV[5]: the outcome as JSON
-- ARGV[6]: the error as JSON, or ''
-- ARGV[7]: the orchestrator of the checkpoint, or ''
-- ARGV[8]: the index of the checkpoint, or ''
-- ARGV[9]: the checkpoint as JSON
-- ARGV[10]: the number of checkpoints to keep, or '' for all
-- ARGV[11]: the written namespaces as JSON
-- ARGV[12..15]: the arguments of claim_from; the holder is '' for no claim
-- ARGV[16]: '1' if the client has the claimed turn, else ''
-- ARGV[17]: the version of the session that the client has, or ''
-- ARGV[18]: the TTL of the session in milliseconds, or ''
-- ARGV[19]: the tokens as JSON, or ''
-- ARGV[20]: the number of changed documents
-- ARGV[21..]: the arguments of append_document for each of them, then the messages
-- @include common, contents, documents, epochs, lane, attempt, sessions

local session_id, turn_id, fence, status, outcome, failure = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local checkpoint_of, turn_index = ARGV[7], ARGV[8]
local claim = ARGV[12] ~= '' and claim_from(12)
local session_ttl_ms = tonumber(ARGV[18])

local settled_fence, orchestrator, failures, epochs, event_ttl =
  unpack(redis.call('HMGET', turn_key(turn_id), 'settledFence', 'orchestrator', 'failures', 'epochs', 'eventTtl'))
if settled_fence ~= fence then
  local lane, fenced = held(session_id, turn_id, fence)
  if fenced then return fenced end
  local reset = reset_since(lane.epochs, epochs, ARGV[11])
  if reset then return refuse('STATE_RESET', 'session_id', session_id, 'namespaces', cjson.encode(reset)) end
  if turn_index ~= '' then
    local first, latest = checkpoint_range(checkpoint_of, session_id)
    if tonumber(turn_index) ~= (latest or -1) + 1 then
      return refuse('CHECKPOINT_CONFLICT',
        'orchestrator', checkpoint_of, 'session_id', session_id, 'turn_index', turn_index)
    end
    append_checkpoint(checkpoint_of, session_id, turn_index, ARGV[9], tonumber(ARGV[10]), first)
  end

  local messages_from = 21 + ARGV[20] * APPEND_ARGUMENTS
  for first = 21, messages_from - 1, APPEND_ARGUMENTS do append_document(first) end
  append_messages(session_id, turn_id, orchestrator, arguments_from(messages_from))

  -- A late settle does not revive a session that has ended.
  local session_change = false
  if status == 'awaiting-input' or status == 'completed' then
    session_change = ARGV[17] ~= '' and touch_known(session_id, ARGV[17], session_ttl_ms)
    if not session_change then
      local session = read(session_key(session_id))
      session_change = session and session.state ~= 'expired' and touch_session(session, session_ttl_ms) or false
    end
  end

  local ended = { 'settledFence', fence, 'outcome', outcome }
  if status == 'failed' then
    ended[5], ended[6] = 'failures', (failures or 0) + 1
  end
  if failure ~= '' then
    ended[#ended + 1], ended[#ended + 2] = 'error', failure
  elseif failures then
    redis.call('HDEL', turn_key(turn_id), 'error')
  end
  if ARGV[19] ~= '' then
    ended[#ended + 1], ended[#ended + 2] = 'spent', ARGV[19]
  end
  end_turn({ id = turn_id, eventTtl = event_ttl }, status, unpack(ended))
  drop_head(session_id, lane)

  -- Turns behind the head were never claimed.
  local next_turn, notify = false, 0
  if claim and lane.head and not is_paused(session_id, lane) then
    local accepted, owner, idempotency_key =
      unpack(redis.call('HMGET', turn_key(lane.head), 'accepted', 'orchestrator', 'idempotencyKey'))
    local head = { id = lane.head, accepted = accepted, orchestrator = owner, idempotencyKey = idempotency_key or nil }
    local known = { session = session_change, checkpoint_of = turn_index ~= '' and checkpoint_of }
    next_turn = begin_attempt(session_id, lane, head, claim, known)
  else
    notify = rest_lane(session_id, lane)
  end
  return { 1, ARGV[16] ~= '' and now or turn_reply(read_turn(turn_id)), session_change, next_turn, notify }
end

-- A repeat: the first settle was committed, and only its answer was lost.
-- @include lane, attempt

local next_turn, notify = claim and claim_lane(session_id, claim), 0
local lane = read_lane(session_id)
if not next_turn and lane.head and not lane.leaseUntil then notify = is_due(read_turn(lane.head)) and 1 or 0 end
return { 1, turn_reply(read_turn(turn_id)), false, next_turn, notify }
