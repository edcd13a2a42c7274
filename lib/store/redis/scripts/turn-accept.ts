import { CONTENTS } from './contents.js';
import { LANE } from './lane.js';
import { script } from './script.js';

/** TurnLedger.accept: repeats first, then the session and its lane, then policy and limits, then the new turn. */
export const ACCEPT = script(
  'accept',
  [CONTENTS, LANE],
  /* lua */ `
local id, session_id, idempotency_key, request_hash, ttl_ms = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local when_busy, max_queued, max_lifetime_ms, foreign_session = ARGV[6], tonumber(ARGV[7]), tonumber(ARGV[8]), ARGV[9]
local lane_key, keys_key = key('lane', session_id), key('keys', session_id)

local function known_as(turn)
  return { 1, 1, turn.status == 'queued' and 1 or 0, turn_reply(turn) }
end

local sent_before = read(key('turn', id))
if sent_before then return known_as(sent_before) end

local lapsed_key_of
if idempotency_key ~= '' then
  local known = redis.call('HGET', keys_key, idempotency_key)
  local turn = known and read(key('turn', known))
  if turn then
    if turn.settledAt and turn.settledAt + ttl_ms <= now then
      lapsed_key_of = turn
    elseif turn.requestHash ~= request_hash then
      return refuse('IDEMPOTENCY_CONFLICT', 'session_id', session_id, 'turn_id', turn.id)
    else
      return known_as(turn)
    end
  end
end

if is_erased(session_id) then return refuse('SESSION_NOT_FOUND', 'session_id', session_id) end
if foreign_session == '' then
  local session = redis.call('HMGET', key('session', session_id), 'state', 'createdAt')
  if not session[1] then return refuse('SESSION_NOT_FOUND', 'session_id', session_id) end
  if session[1] == 'expired' or (max_lifetime_ms and now - session[2] > max_lifetime_ms) then
    return refuse('SESSION_STATE', 'session_id', session_id, 'state', 'expired', 'attempted', 'accept a turn')
  end
end

local lane = read(lane_key)
if lane and lane.mode == 'draining' or mode_of_all() == 'draining' then
  return refuse('LANE_DRAINING', 'session_id', session_id)
end
local head = lane and head_of(session_id)
if head and when_busy == 'reject' then
  local alive = lane.runningTurn and not is_lapsed(lane) and 1 or 0
  return refuse('SESSION_BUSY', 'session_id', session_id, 'turn_id', head.id, 'alive', alive,
    'since', head.startedAt or head.acceptedAt)
end

-- Who has to go, and how many stay: counted before anything is written.
local stops = ({ interrupt = 'interrupt', rollback = 'rollback', replace = 'interrupt' })[when_busy]
local supersedes = when_busy == 'latest' or when_busy == 'replace'
local holder = head and has_begun(head) and head
local queued = head and redis.call('ZCARD', open_key(session_id)) - (holder and 1 or 0) or 0
if not supersedes and queued >= max_queued then
  return refuse('LANE_FULL', 'session_id', session_id, 'limit', max_queued)
end
if supersedes and max_queued <= 0 then return refuse('LANE_FULL', 'session_id', session_id, 'limit', max_queued) end

if lapsed_key_of then
  redis.call('HDEL', keys_key, idempotency_key)
  write(key('turn', lapsed_key_of.id), lapsed_key_of, { idempotencyKey = false })
end
if supersedes and head then
  for _, open_id in ipairs(redis.call('ZRANGE', open_key(session_id), 0, -1)) do
    local turn = open_id == head.id and head or read(key('turn', open_id))
    if not has_begun(turn) then end_turn(turn, 'superseded', { supersededBy = id }) end
  end
end
if stops and holder then
  if holder.status ~= 'running' then
    stop_turn(holder, stops)
  elseif not holder.cancelMode then
    write(key('turn', holder.id), holder, { cancelMode = stops })
    changed(holder.id)
  end
end

lane = lane or new_lane(session_id)
local position = tonumber(lane.nextPosition)
redis.call('HSET', key('turn', id), 'id', id, 'sessionId', session_id, 'position', position, 'orchestrator', ARGV[10],
  'version', ARGV[11], 'request', ARGV[12], 'attributes', ARGV[13], 'userMessage', ARGV[14], 'status', 'queued',
  'acceptedAt', now)
if idempotency_key ~= '' then
  redis.call('HSET', key('turn', id), 'idempotencyKey', idempotency_key, 'requestHash', request_hash)
  redis.call('HSET', keys_key, idempotency_key, id)
end
redis.call('ZADD', key('turns', session_id), position, id)
redis.call('ZADD', open_key(session_id), position, id)
if not head then redis.call('ZADD', base .. 'lanes', 0, session_id) end
redis.call('HINCRBY', lane_key, 'nextPosition', 1)

-- Behind a head that keeps its place the lane is visited, or will be; a new head needs a ring.
local ring = 0
if not head then
  ring = 1
  attend(session_id, now + RING_GRACE_MS)
elseif not lane.runningTurn and is_terminal(head) then
  ring = rest_lane(session_id, lane)
end
return { 1, 0, ring, position, now }
`,
);
