import { CONTENTS } from './contents.js';
import { LANE } from './lane.js';
import { query, script, thrifty } from './script.js';

/** What anybody may do with a turn, and the reads. */

export const SIGNAL = script(
  'signal',
  [CONTENTS, LANE],
  /* lua */ `
local name, payload = ARGV[2], ARGV[3]
local turn = read_turn(ARGV[1])
if not turn then return refuse('TURN_NOT_FOUND', 'turn_id', ARGV[1]) end
local signals_key = key('signals', turn.id)
if redis.call('HEXISTS', signals_key, name) == 1 then return { 1, turn_reply(turn), 0, 0 } end
if turn.settledAt then return refuse('TURN_SETTLED', 'turn', turn_reply(turn)) end

redis.call('HSET', signals_key, name, payload)
if turn.status ~= 'waiting' or turn.waitSignal ~= name then return { 1, turn_reply(turn), 1, 0 } end
redis.call('HSETNX', key('steps', turn.id), turn.waitStep, '{"received":true,"payload":' .. payload .. '}')
write(turn_key(turn.id), turn, { status = 'queued', waitSignal = false, waitStep = false, waitUntil = false })
changed(turn.id)
local session_id = session_of(turn)
return { 1, turn_reply(turn), 1, rest_lane(session_id, read_lane(session_id)) }
`,
);

export const CANCEL = script(
  'cancel',
  [CONTENTS, LANE],
  /* lua */ `
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
`,
);

/**
 * Lanes to ring, each put off for a while that doubles until somebody claims: a backlog is not rung without end. One that
 * runs is looked at again when its lease ends.
 */
export const DUE = script(
  'due',
  [CONTENTS, LANE],
  /* lua */ `
-- Pages of lanes that only run, in a call, so that nobody waits for long.
local MOST_PAGES = 10

local function offer(session_id)
  local offers = redis.call('HINCRBY', lane_key(session_id), 'offers', 1)
  attend(session_id, whole(now + math.min(RING_GRACE_MS * 2 ^ (offers - 1), MAX_OFFER_BACKOFF_MS)))
  return session_id
end

if mode_of_all() == 'paused' then return { 1, {} } end
local limit, found = tonumber(ARGV[1]), {}
for _ = 1, MOST_PAGES do
  local page = redis.call('ZRANGE', base .. 'due', '-inf', stamp, 'BYSCORE', 'LIMIT', 0, limit - #found)
  for _, session_id in ipairs(page) do
    local lease_until = redis.call('HGET', lane_key(session_id), 'leaseUntil')
    if lease_until and tonumber(lease_until) > now then
      attend(session_id, lease_until)
    else
      found[#found + 1] = offer(session_id)
    end
  end
  if #page == 0 or #found == limit then break end
end
return { 1, found }
`,
);

/** ARGV: olderThanMs, limit. */
export const PURGE_SETTLED = thrifty(
  'purge-settled',
  [CONTENTS, LANE],
  /* lua */ `
local ids = redis.call('ZRANGE', base .. 'settled', '-inf', '(' .. now - ARGV[1], 'BYSCORE', 'LIMIT', 0, ARGV[2])
for _, id in ipairs(ids) do
  local accepted, idempotency_key = unpack(redis.call('HMGET', turn_key(id), 'accepted', 'idempotencyKey'))
  local session_id = accepted and session_of({ accepted = accepted }) or ''
  if idempotency_key then redis.call('HDEL', key('keys', session_id), idempotency_key) end
  remove_turns(session_id, { id })
end
return { 1, #ids }
`,
);

export const GET_TURN = query(
  'get-turn',
  [CONTENTS, LANE],
  /* lua */ `
local turn = read_turn(ARGV[1])
return { 1, turn and turn_reply(turn) or false }
`,
);

export const TURN_STEPS = query(
  'turn-steps',
  [],
  /* lua */ `
return { 1, redis.call('HGETALL', key('steps', ARGV[1])) }
`,
);

export const TURN_SIGNALS = query(
  'turn-signals',
  [],
  /* lua */ `
return { 1, redis.call('HGETALL', key('signals', ARGV[1])) }
`,
);

/** ARGV: session, position to begin after, limit, then the statuses that are asked for. */
export const LIST_TURNS = query(
  'list-turns',
  [CONTENTS, LANE],
  /* lua */ `
local after, limit = tonumber(ARGV[2]), tonumber(ARGV[3])
local wanted, only_open = nil, #ARGV > 3
for i = 4, #ARGV do
  wanted = wanted or {}
  wanted[ARGV[i]] = true
  only_open = only_open and (ARGV[i] == 'queued' or ARGV[i] == 'running' or ARGV[i] == 'waiting')
end
-- The open ones begin with the head, which costs nothing of the lane's history.
if only_open then
  local head = redis.call('HGET', lane_key(ARGV[1]), 'head')
  if not head then return { 1, {} } end
  after = math.max(after, redis.call('ZSCORE', key('turns', ARGV[1]), head) - 1)
end
local found = {}
while #found < limit do
  local ids = redis.call('ZRANGE', key('turns', ARGV[1]), '(' .. after, '+inf', 'BYSCORE', 'LIMIT', 0, limit, 'WITHSCORES')
  if #ids == 0 then break end
  for i = 1, #ids, 2 do
    local turn = read_turn(ids[i])
    after = ids[i + 1]
    if (not wanted or wanted[turn.status]) and #found < limit then found[#found + 1] = turn_reply(turn) end
  end
end
return { 1, found }
`,
);
