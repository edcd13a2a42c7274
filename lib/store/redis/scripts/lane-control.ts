import { CONTENTS } from './contents.js';
import { LANE } from './lane.js';
import { query, script, thrifty } from './script.js';

/** ARGV: session or '' for all lanes, mode, whether the session is in a foreign store. */
export const CONTROL_LANE = script(
  'control-lane',
  [CONTENTS, LANE],
  /* lua */ `
local session_id, mode, foreign_session = ARGV[1], ARGV[2], ARGV[3]
local is_there = session_id == '' or foreign_session ~= '' or redis.call('EXISTS', key('session', session_id)) == 1
if not is_there or is_erased(session_id) then return refuse('SESSION_NOT_FOUND', 'session_id', session_id) end
local lane = read_lane(session_id)
write(lane_key(session_id), lane, { mode = mode ~= 'open' and mode })
if not lane.head or mode == 'paused' then return { 1, 0 } end

-- Says anew when somebody must look: a claim that was refused has put it out of sight.
if not lane.leaseUntil then return { 1, rest_lane(session_id, lane) } end
attend(session_id, lane.leaseUntil)
return { 1, is_lapsed(lane) and 1 or 0 }
`,
);

/** Gives the ids of the turns that it cancelled. */
export const CLEAR_LANE = thrifty(
  'clear-lane',
  [CONTENTS, LANE],
  /* lua */ `
return { 1, cancel_open_turns(ARGV[1]) }
`,
);

/** Needs LANE. */
const LANE_VIEW = /* lua */ `
local HEAD = {
  'orchestrator', 'status', 'failures', 'lost', 'cancelMode', 'waitSignal', 'waitUntil', 'accepted', 'startedAt', 'dueAt',
}
local ACCEPTED = 8

local function accepted_at(accepted)
  return (place_of(accepted))
end

-- What is shown of a lane, there or not: itself, how many turns are open, the head, and when the one behind was accepted.
local function lane_view(session_id)
  local lane = redis.call('HMGET', lane_key(session_id), 'mode', 'holder', 'leaseUntil', 'head')
  local id = table.remove(lane)
  if not id then return { session_id, lane, 0, false, false } end
  local head = redis.call('HMGET', turn_key(id), unpack(HEAD))
  head[ACCEPTED] = accepted_at(head[ACCEPTED])
  table.insert(head, 1, id)
  local behind = redis.call('LINDEX', queue_key(session_id), 0)
  return {
    session_id, lane, 1 + redis.call('LLEN', queue_key(session_id)), head,
    behind and accepted_at(redis.call('HGET', turn_key(behind), 'accepted')) or false,
  }
end
`;

export const GET_LANE = query(
  'get-lane',
  [CONTENTS, LANE, LANE_VIEW],
  /* lua */ `
return { 1, lane_view(ARGV[1]) }
`,
);

/** ARGV: the bound of the ids as ZRANGE BYLEX takes it, limit. */
export const LIST_LANES = query(
  'list-lanes',
  [CONTENTS, LANE, LANE_VIEW],
  /* lua */ `
local views = {}
for i, session_id in ipairs(redis.call('ZRANGE', base .. 'lanes', ARGV[1], '+', 'BYLEX', 'LIMIT', 0, ARGV[2])) do
  views[i] = lane_view(session_id)
end
return { 1, mode_of_all() or 'open', views }
`,
);
