import { CONTENTS } from './contents.js';
import { LANE } from './lane.js';
import { query, script, thrifty } from './script.js';

/** What anybody may do with a turn, and the reads. */

export const SIGNAL = script(
  'signal',
  [CONTENTS, LANE],
  /* lua */ `
local name, payload = ARGV[2], ARGV[3]
local turn = read(key('turn', ARGV[1]))
if not turn then return refuse('TURN_NOT_FOUND', 'turn_id', ARGV[1]) end
local signals_key = key('signals', turn.id)
if redis.call('HEXISTS', signals_key, name) == 1 then return { 1, turn_reply(turn), 0, 0 } end
if is_terminal(turn) then return refuse('TURN_SETTLED', 'turn', turn_reply(turn)) end

redis.call('HSET', signals_key, name, payload)
if turn.status ~= 'waiting' or turn.waitSignal ~= name then return { 1, turn_reply(turn), 1, 0 } end
redis.call('HSETNX', key('steps', turn.id), turn.waitStep, '{"received":true,"payload":' .. payload .. '}')
write(key('turn', turn.id), turn, { status = 'queued', waitSignal = false, waitStep = false, waitUntil = false })
changed(turn.id)
local ring = rest_lane(turn.sessionId, read(key('lane', turn.sessionId)))
return { 1, turn_reply(turn), 1, ring }
`,
);

export const CANCEL = script(
  'cancel',
  [CONTENTS, LANE],
  /* lua */ `
local mode = ARGV[2]
local turn = read(key('turn', ARGV[1]))
if not turn then return refuse('TURN_NOT_FOUND', 'turn_id', ARGV[1]) end
if is_terminal(turn) then return { 1, turn_reply(turn), 0 } end
if turn.status == 'running' then
  mark_turn(turn, mode)
  return { 1, turn_reply(turn), 0 }
end
local was_head = redis.call('ZRANK', open_key(turn.sessionId), turn.id) == 0
stop_turn(turn, turn.status == 'waiting' and mode or 'cancel')
-- Behind the head nothing changes for the lane; a new head may be due at once.
local ring = was_head and rest_lane(turn.sessionId, read(key('lane', turn.sessionId))) or 0
return { 1, turn_reply(turn), ring }
`,
);

/** Lanes to ring, each put off for a while that doubles until somebody claims: a backlog is not rung without end. */
export const DUE = script(
  'due',
  [CONTENTS, LANE],
  /* lua */ `
if mode_of_all() == 'paused' then return { 1, {} } end
local session_ids = redis.call('ZRANGE', base .. 'due', '-inf', now, 'BYSCORE', 'LIMIT', 0, ARGV[1])
for _, session_id in ipairs(session_ids) do
  local offers = redis.call('HINCRBY', key('lane', session_id), 'offers', 1)
  attend(session_id, now + math.min(RING_GRACE_MS * 2 ^ (offers - 1), MAX_OFFER_BACKOFF_MS))
end
return { 1, session_ids }
`,
);

/** ARGV: olderThanMs, limit. */
export const PURGE_SETTLED = thrifty(
  'purge-settled',
  [CONTENTS, LANE],
  /* lua */ `
local ids = redis.call('ZRANGE', base .. 'settled', '-inf', '(' .. now - ARGV[1], 'BYSCORE', 'LIMIT', 0, ARGV[2])
for _, id in ipairs(ids) do
  local turn = redis.call('HMGET', key('turn', id), 'sessionId', 'idempotencyKey')
  if turn[2] then redis.call('HDEL', key('keys', turn[1]), turn[2]) end
  remove_turns(turn[1] or '', { id })
end
return { 1, #ids }
`,
);

export const GET_TURN = query(
  'get-turn',
  [CONTENTS, LANE],
  /* lua */ `
local turn = read(key('turn', ARGV[1]))
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
-- Open turns have an index of their own, which costs nothing of the lane's history.
local at = only_open and open_key(ARGV[1]) or key('turns', ARGV[1])
local found = {}
while #found < limit do
  local ids = redis.call('ZRANGE', at, '(' .. after, '+inf', 'BYSCORE', 'LIMIT', 0, limit)
  if #ids == 0 then break end
  for _, id in ipairs(ids) do
    local turn = read(key('turn', id))
    after = tonumber(turn.position)
    if (not wanted or wanted[turn.status]) and #found < limit then found[#found + 1] = turn_reply(turn) end
  end
end
return { 1, found }
`,
);
