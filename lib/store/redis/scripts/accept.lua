#!lua
-- TurnLedger.accept.
-- ARGV[1]: the id of the turn
-- ARGV[2]: the session
-- ARGV[3]: the idempotency key, or ''
-- ARGV[4]: the hash of orchestrator and input
-- ARGV[5]: the time to live of the key in milliseconds
-- ARGV[6]: whenBusy
-- ARGV[7]: the maximum number of queued turns
-- ARGV[8]: the maximum age of the session in milliseconds, or ''
-- ARGV[9]: '' if the session is in an external store, else 1 or the session that must have the id, see is_other_session
-- ARGV[10]: the orchestrator
-- ARGV[11]: the session id and the acceptance, as acceptedTexts returns them
-- ARGV[12]: the user's message, or '' for a turn that stores none
-- ARGV[13..16]: the arguments of claim_from; the holder is '' for no claim
-- @include common, lane

local id, session_id, idempotency_key, request_hash, ttl_ms = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local when_busy, max_queued, max_lifetime_ms, is_foreign = ARGV[6], tonumber(ARGV[7]), tonumber(ARGV[8]), ARGV[9] == ''
local wants_claim = ARGV[13] ~= ''
local keys_key = key('keys', session_id)

local state, created_at, user_id
if not is_foreign then
  state, created_at, user_id = unpack(redis.call('HMGET', key('session', session_id), 'state', 'createdAt', 'userId'))
  -- First, because another session may have a turn with the same key.
  if state and is_other_session(ARGV[9], created_at, user_id) then
    return refuse('SESSION_NOT_FOUND', 'session_id', session_id)
  end
end

local sent_before, lapsed_key_of = read_turn(id), nil
if idempotency_key ~= '' and not sent_before then
  local known = redis.call('HGET', keys_key, idempotency_key)
  local turn = known and read_turn(known)
  if turn and turn.settledAt and turn.settledAt + ttl_ms <= now then
    lapsed_key_of = known
  elseif turn and turn.requestHash ~= request_hash then
    return refuse('IDEMPOTENCY_CONFLICT', 'session_id', session_id, 'turn_id', known)
  else
    sent_before = turn
  end
end

if not sent_before and is_foreign then
  if is_erased(session_id) then return refuse('SESSION_NOT_FOUND', 'session_id', session_id) end
elseif not sent_before then
  -- An erased session has no row.
  if not state then return refuse('SESSION_NOT_FOUND', 'session_id', session_id) end
  if state == 'expired' or (max_lifetime_ms and now - created_at > max_lifetime_ms) then
    return refuse('SESSION_STATE', 'session_id', session_id, 'state', 'expired', 'attempted', 'accept a turn')
  end
end

local lane, mode_of_others = read_lane(session_id), mode_of_all()
if not sent_before and (lane.mode == 'draining' or mode_of_others == 'draining') then
  return refuse('LANE_DRAINING', 'session_id', session_id)
end
local head_before = lane.head
local is_held = head_before and (lane.leaseUntil or redis.call('HEXISTS', turn_key(head_before), 'startedAt') == 1)
local queued = head_before and redis.call('LLEN', queue_key(session_id)) + (is_held and 0 or 1) or 0

-- Appends the turn to its lane. Returns its position.
local function append_turn()
  local at, position = turn_key(id), lane.nextPosition or '1'
  redis.call('HSET', at, 'accepted', stamp .. '\n' .. position .. '\n' .. ARGV[11], 'orchestrator', ARGV[10],
    'userMessage', ARGV[12], 'status', 'queued')
  if lapsed_key_of then redis.call('HDEL', turn_key(lapsed_key_of), 'idempotencyKey') end
  if idempotency_key ~= '' then
    redis.call('HSET', at, 'idempotencyKey', idempotency_key, 'requestHash', request_hash)
    redis.call('HSET', keys_key, idempotency_key, id)
  end
  redis.call('ZADD', key('turns', session_id), position, id)
  if lane.head then
    redis.call('RPUSH', queue_key(session_id), id)
  else
    lane.head = id
    if not head_before then redis.call('ZADD', base .. 'lanes', 0, session_id) end
  end
  redis.call('HSET', lane_key(session_id), 'nextPosition', whole(position + 1), 'head', lane.head)
  return tonumber(position)
end

if not sent_before and not wants_claim and queued < max_queued and (not head_before or when_busy == 'enqueue') then
  local position, notify = append_turn(), head_before and 0 or 1
  -- Behind a head, no notification is needed: a worker already visits the lane, or will.
  if notify == 1 then attend(session_id, whole(now + NOTIFY_GRACE_MS)) end
  return { 1, 0, notify, position, now, false }
end

-- The other cases: a repeat, the policy, the limit and the claim. Included only here, because most calls return above.
-- @include common, lane, attempt

local claim = wants_claim and claim_from(13)
if sent_before then
  local is_ours = claim and lane.head == sent_before.id and is_held_by(lane, claim)
  return {
    1, 1, sent_before.status == 'queued' and 1 or 0, turn_reply(sent_before),
    is_ours and claimed_reply(session_id, lane, sent_before, claim, {}) or false,
  }
end

local head = head_before and read_turn(head_before)
if head and when_busy == 'reject' then
  local alive = lane.leaseUntil and not is_lapsed(lane) and 1 or 0
  return refuse('SESSION_BUSY', 'session_id', session_id, 'turn_id', head.id, 'alive', alive,
    'since', head.startedAt or place_of(head.accepted))
end

-- Selects the turns to stop and counts the remaining ones before the first write.
local stops = ({ interrupt = 'interrupt', rollback = 'rollback', replace = 'interrupt' })[when_busy]
local supersedes = when_busy == 'latest' or when_busy == 'replace'
if max_queued <= (supersedes and 0 or queued) then
  return refuse('LANE_FULL', 'session_id', session_id, 'limit', max_queued)
end

if supersedes and head then
  for _, open_id in ipairs(open_turns(session_id, head.id)) do
    if open_id ~= head.id then
      end_turn(read_turn(open_id), 'superseded', 'supersededBy', id)
    elseif not is_held then
      end_turn(head, 'superseded', 'supersededBy', id)
    end
  end
  redis.call('UNLINK', queue_key(session_id))
  if not is_held then lane.head = nil end
end
if stops and is_held then
  if not lane.leaseUntil then
    stop_turn(head, stops)
    drop_head(session_id, lane)
  elseif not head.cancelMode then
    mark_turn(head, stops)
  end
end

-- If the head stays the same, its claim is pending or active. A new head needs a notification, unless claimed here.
local position, notify, claimed = append_turn(), 0, false
if claim and lane.head == id and lane.mode ~= 'paused' and mode_of_others ~= 'paused' then
  claimed = begin_attempt(session_id, lane, { id = id, orchestrator = ARGV[10] }, claim, { turn = true })
elseif lane.head ~= head_before then
  notify = rest_lane(session_id, lane)
end
return { 1, 0, notify, position, now, claimed }
