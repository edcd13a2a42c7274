import { CONTENTS } from './contents.js';
import { LANE } from './lane.js';
import { script, thrifty } from './script.js';

/** What the holder of a turn may do besides settling it. */

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
  [CONTENTS, LANE],
  /* lua */ `
local lane, fenced = held(ARGV[1], ARGV[2], ARGV[3])
if fenced then return fenced end
local turn = read_turn(ARGV[2])
local changes = { status = 'queued', failures = (turn.failures or 0) + 1, error = ARGV[4], dueAt = now + ARGV[5] }
return put_back(ARGV[1], lane, turn, changes)
`,
);

export const RELEASE = script(
  'release',
  [CONTENTS, LANE],
  /* lua */ `
local lane, fenced = held(ARGV[1], ARGV[2], ARGV[3])
if fenced then return fenced end
local turn = read_turn(ARGV[2])
local reply = put_back(ARGV[1], lane, turn, { status = 'queued' })
-- Another worker may claim it at any time; this is only when somebody must look.
if turn.status == 'queued' then attend(ARGV[1], now + ARGV[4]) end
return reply
`,
);

export const WAIT = script(
  'wait',
  [CONTENTS, LANE],
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
return put_back(ARGV[1], lane, turn, {
  status = 'waiting', waitSignal = signal, waitStep = step, waitUntil = timeout_ms and now + timeout_ms or false,
})
`,
);

export const SAVE_STEP = script(
  'save-step',
  [CONTENTS, LANE],
  /* lua */ `
local _, fenced = held(ARGV[1], ARGV[2], ARGV[3])
if fenced then return fenced end
local at = key('steps', ARGV[2])
redis.call('HSETNX', at, ARGV[4], ARGV[5])
return { 1, redis.call('HGET', at, ARGV[4]) }
`,
);
