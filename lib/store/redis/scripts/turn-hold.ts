import { CONTENTS } from './contents.js';
import { DOCUMENTS } from './documents.js';
import { LANE } from './lane.js';
import { query, script, thrifty } from './script.js';

/** What the holder of a turn may do besides settling it. */

/** How the tokens of a held turn are recorded. Needs LANE and DOCUMENTS. */
const SPENDING = /* lua */ `
-- ARGV, from the first on: the tokens as JSON, and of the document that counts them its namespace as JSON and what append_document
-- takes. A turn that is given gets them, too.
local function record_spending(lane, turn_id, first, turn)
  local spent, namespaces = ARGV[first], ARGV[first + 1]
  if not spent then return end
  redis.call('HSET', turn_key(turn_id), 'spent', spent)
  if turn then turn.spent = spent end
  if not namespaces then return end
  local epochs = turn and turn.epochs
  if not turn then epochs = redis.call('HGET', turn_key(turn_id), 'epochs') or nil end
  if not reset_since(lane.epochs, epochs, namespaces) then append_document(first + 2) end
end
`;

export const RENEW = thrifty(
  'renew',
  [CONTENTS, LANE],
  /* lua */ `
local lane, fenced = held(ARGV[1], ARGV[2], ARGV[3])
if fenced then return fenced end
local lease_until = whole(now + ARGV[4])
redis.call('HSET', lane_key(ARGV[1]), 'leaseUntil', lease_until)
attend(ARGV[1], lease_until)
return { 1, redis.call('HGET', turn_key(ARGV[2]), 'cancelMode') }
`,
);

export const RETRY = script(
  'retry',
  [CONTENTS, DOCUMENTS, LANE, SPENDING],
  /* lua */ `
local lane, fenced = held(ARGV[1], ARGV[2], ARGV[3])
if fenced then return fenced end
local turn = read_turn(ARGV[2])
record_spending(lane, turn.id, 6, turn)
local changes = { status = 'queued', failures = (turn.failures or 0) + 1, error = ARGV[4], dueAt = now + ARGV[5] }
return put_back(ARGV[1], lane, turn, changes)
`,
);

export const RELEASE = script(
  'release',
  [CONTENTS, DOCUMENTS, LANE, SPENDING],
  /* lua */ `
local lane, fenced = held(ARGV[1], ARGV[2], ARGV[3])
if fenced then return fenced end
local turn = read_turn(ARGV[2])
record_spending(lane, turn.id, 5, turn)
local reply = put_back(ARGV[1], lane, turn, { status = 'queued' })
-- Another worker may claim it at any time; this is only when somebody must look.
if turn.status == 'queued' then attend(ARGV[1], ARGV[4] == '0' and BEFORE_OTHERS or now + ARGV[4]) end
return reply
`,
);

export const WAIT = script(
  'wait',
  [CONTENTS, DOCUMENTS, LANE, SPENDING],
  /* lua */ `
local signal, step, timeout_ms = ARGV[4], ARGV[5], tonumber(ARGV[6])
local lane, fenced = held(ARGV[1], ARGV[2], ARGV[3])
if fenced then return fenced end
local turn = read_turn(ARGV[2])
local early = redis.call('HGET', key('signals', turn.id), signal)
if early then
  redis.call('HSETNX', key('steps', turn.id), step, '{"received":true,"payload":' .. early .. '}')
  return { 1, turn_reply(turn), early }
end
record_spending(lane, turn.id, 7, turn)
return put_back(ARGV[1], lane, turn, {
  status = 'waiting', waitSignal = signal, waitStep = step, waitUntil = timeout_ms and now + timeout_ms or false,
})
`,
);

export const SAVE_AWAITED = script(
  'save-awaited',
  [CONTENTS, LANE],
  /* lua */ `
local _, fenced = held(ARGV[1], ARGV[2], ARGV[3])
if fenced then return fenced end
redis.call('HSET', lane_key(ARGV[1]), 'awaited', ARGV[4])
return { 1 }
`,
);

export const AWAITED = query(
  'awaited',
  [CONTENTS, LANE],
  /* lua */ `
local lane = redis.call('HMGET', lane_key(ARGV[1]), 'leaseUntil', 'head', 'fence', 'awaited')
return { 1, lane }
`,
);

export const SAVE_STEP = script(
  'save-step',
  [CONTENTS, DOCUMENTS, LANE, SPENDING],
  /* lua */ `
local lane, fenced = held(ARGV[1], ARGV[2], ARGV[3])
if fenced then return fenced end
record_spending(lane, ARGV[2], 8)
local at = key('steps', ARGV[2])
if ARGV[6] and ARGV[6] ~= '' then redis.call('HSETNX', at, ARGV[6], ARGV[7]) end
redis.call('HSETNX', at, ARGV[4], ARGV[5])
return { 1, redis.call('HGET', at, ARGV[4]) }
`,
);
