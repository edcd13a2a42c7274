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

/** Offers a lane that nobody runs, which puts it off for a while that doubles until somebody claims: a backlog is not rung without end. */
const OFFER = /* lua */ `
-- A lane of the index; nil when a worker runs it: it is looked at again when its lease ends.
local function idle_lane(id, attention_at)
  local lease_until, offers, first_at = unpack(redis.call('HMGET', lane_key(id), 'leaseUntil', 'offers', 'firstAttentionAt'))
  if lease_until and tonumber(lease_until) > now then
    attend(id, lease_until)
    return nil
  end
  return { id = id, offers = tonumber(offers or 0), first_at = offers and first_at or attention_at }
end

local function offer(lane)
  redis.call('HSET', lane_key(lane.id), 'offers', lane.offers + 1, 'firstAttentionAt', lane.first_at)
  attend(lane.id, whole(now + math.min(RING_GRACE_MS * 2 ^ lane.offers, MAX_OFFER_BACKOFF_MS)))
  return lane.id
end

if mode_of_all() == 'paused' then return { 1, {} } end
`;

/** Lanes to ring, the most overdue first. */
export const DUE = script(
  'due',
  [CONTENTS, LANE],
  /* lua */ `
${OFFER}
-- Pages of lanes that only run, in a call, so that nobody waits for long.
local MOST_PAGES = 10

local limit, found = tonumber(ARGV[1]), {}
for _ = 1, MOST_PAGES do
  local page = redis.call('ZRANGE', base .. 'due', '-inf', stamp, 'BYSCORE', 'LIMIT', 0, limit - #found, 'WITHSCORES')
  for i = 1, #page, 2 do
    local lane = idle_lane(page[i], page[i + 1])
    if lane then found[#found + 1] = offer(lane) end
  end
  if #page == 0 or #found == limit then break end
end
return { 1, found }
`,
);

/** Lanes to ring, those that were put off included; those that wait longest first. */
export const DUE_OR_OFFERED = script(
  'due-or-offered',
  [CONTENTS, LANE],
  /* lua */ `
${OFFER}
-- Lanes that are looked at in a call, so that nobody waits for long. The others are offered when they are due.
local MOST_LANES = 10000

local until_time = whole(now + MAX_OFFER_BACKOFF_MS)
local lanes = redis.call('ZRANGE', base .. 'due', '-inf', until_time, 'BYSCORE', 'LIMIT', 0, MOST_LANES, 'WITHSCORES')
local waiting = {}
for i = 1, #lanes, 2 do
  local lane = idle_lane(lanes[i], lanes[i + 1])
  if lane and (lane.offers > 0 or tonumber(lanes[i + 1]) <= now) then waiting[#waiting + 1] = lane end
end
table.sort(waiting, function(a, b) return tonumber(a.first_at) < tonumber(b.first_at) end)
local found = {}
for i = 1, math.min(#waiting, tonumber(ARGV[1])) do found[i] = offer(waiting[i]) end
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

/** ARGV: session, position to begin after, limit, order, whether open turns only, then the statuses that are asked for. */
export const LIST_TURNS = query(
  'list-turns',
  [CONTENTS, LANE],
  /* lua */ `
local after, limit, latest_first = ARGV[2], tonumber(ARGV[3]), ARGV[4] == 'desc'
local wanted = nil
for i = 6, #ARGV do
  wanted = wanted or {}
  wanted[ARGV[i]] = true
end
local first = '-inf'
-- The open ones begin with the head, which costs nothing of the lane's history.
if ARGV[5] == '1' then
  local head = redis.call('HGET', lane_key(ARGV[1]), 'head')
  if not head then return { 1, {} } end
  first = redis.call('ZSCORE', key('turns', ARGV[1]), head)
  if not latest_first and tonumber(after) < tonumber(first) then after = first - 1 end
end
local function next_ids()
  local lane = key('turns', ARGV[1])
  if latest_first then
    return redis.call('ZRANGE', lane, '(' .. after, first, 'BYSCORE', 'REV', 'LIMIT', 0, limit, 'WITHSCORES')
  end
  return redis.call('ZRANGE', lane, '(' .. after, '+inf', 'BYSCORE', 'LIMIT', 0, limit, 'WITHSCORES')
end
local found = {}
while #found < limit do
  local ids = next_ids()
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
