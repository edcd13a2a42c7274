import { query, script } from './script.js';

/** A stream for a turn: an entry is a batch, its id the offset of the batch's last event. It expires when the turn ends. */
const EVENTS = /* lua */ `
local function last_offset(entry)
  return tonumber(string.match(entry[1], '^%d+'))
end

-- The last batch of a turn: nil when there is none.
local function last_batch(turn_id)
  return redis.call('XREVRANGE', key('events', turn_id), '+', '-', 'COUNT', 1)[1]
end
`;

/**
 * ARGV: session, turn, fence, number of the batch, how many events, the text of their JSON array, the text of the one that
 * goes before them when the last one is of an earlier attempt, ttlMs.
 */
export const APPEND_EVENTS = script(
  'append-events',
  [EVENTS],
  /* lua */ `
local session_id, turn_id, fence, batch, count, events = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5], ARGV[6]
local lane = redis.call('HMGET', key('lane', session_id), 'head', 'fence', 'leaseUntil')
if lane[1] ~= turn_id or lane[2] ~= fence or not lane[3] then
  return refuse('TURN_FENCED', 'session_id', session_id, 'turn_id', turn_id, 'fence', fence)
end
local last, first = last_batch(turn_id), 1
if last then
  local last_fence, last_number = last[2][2], tonumber(last[2][4])
  if last_fence == fence and last_number >= batch then return { 1, last_offset(last) } end
  first = last_offset(last) + 1
  if last_fence ~= fence then
    events = '[' .. ARGV[7] .. ',' .. string.sub(events, 2)
    first = first + 1
  end
end
local offset = string.format('%.0f', first + count - 1)
redis.call('XADD', key('events', turn_id), offset .. '-0', 'fence', fence, 'batch', batch, 'events', events)
local turn_key = key('turn', turn_id)
if redis.call('HGET', turn_key, 'eventTtl') ~= ARGV[8] then redis.call('HSET', turn_key, 'eventTtl', ARGV[8]) end
return { 1, tonumber(offset) }
`,
);

/** ARGV: turn, the offset after which to begin, and the one at which it is enough. */
export const READ_EVENTS = query(
  'read-events',
  [EVENTS],
  /* lua */ `
local at, after, enough = key('events', ARGV[1]), ARGV[2], ARGV[3]
local batches = {}
local function add(entries)
  for _, entry in ipairs(entries) do
    batches[#batches + 1] = string.match(entry[1], '^%d+')
    batches[#batches + 1] = entry[2][6]
  end
end
add(redis.call('XRANGE', at, '(' .. after .. '-0', '(' .. enough .. '-0'))
add(redis.call('XRANGE', at, enough .. '-0', '+', 'COUNT', 1))
return { 1, batches }
`,
);

export const LAST_EVENT = query(
  'last-event',
  [EVENTS],
  /* lua */ `
local last = last_batch(ARGV[1])
return { 1, last and last_offset(last) or 0 }
`,
);
