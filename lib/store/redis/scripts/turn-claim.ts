import { CONTENTS } from './contents.js';
import { DOCUMENTS } from './documents.js';
import { LANE } from './lane.js';
import { script } from './script.js';

/** How a worker gets the head of a lane: alone, with a turn that it accepts, or after one that it settles. Needs LANE and DOCUMENTS. */
export const ATTEMPT = /* lua */ `
-- ARGV, from the first on: holder, leaseMs, maxAttempts, and what the worker needs as JSON, '' for nothing.
local function claim_from(first)
  return {
    holder = ARGV[first], lease_ms = ARGV[first + 1], max_attempts = tonumber(ARGV[first + 2]), needs = ARGV[first + 3],
  }
end

-- Whether a lane gives out no turn. One that is paused itself is not offered again until it is opened.
local function is_paused(session_id, lane)
  if lane.mode ~= 'paused' then return mode_of_all() == 'paused' end
  attend(session_id, nil)
  return true
end

-- The same claim sent twice gets the same answer.
local function is_held_by(lane, claim)
  return lane.leaseUntil ~= nil and lane.holder == claim.holder and not is_lapsed(lane)
end

-- What the client knows is not sent again: its turn, the session, and the checkpoint that was just written. A first attempt has no steps.
local function claimed_reply(session_id, lane, turn, claim, known)
  local orchestrator = turn.orchestrator
  local needs = claim.needs ~= '' and cjson.decode(claim.needs) or {}
  local window, documents = needs.windows and needs.windows[orchestrator], needs.documents and needs.documents[orchestrator]
  return {
    lane.fence,
    not known.turn and turn_reply(turn),
    not known.session and redis.call('HGETALL', key('session', session_id)),
    known.checkpoint_of == orchestrator and now or latest_checkpoint(orchestrator, session_id),
    window and read_window(session_id, window) or false,
    not known.is_first and redis.call('HGETALL', key('steps', turn.id)),
    documents and live_documents(documents) or false,
    lane.epochs or false,
  }
end

-- Gives a head to a worker.
local function begin_attempt(session_id, lane, head, claim, known)
  local at, lease_until = turn_key(head.id), now + claim.lease_ms
  if has_begun(head) then
    if head.status == 'waiting' and head.waitStep then
      redis.call('HSETNX', key('steps', head.id), head.waitStep, '{"received":false}')
    end
    write(at, head, {
      status = 'running', failures = head.failures or false,
      dueAt = false, waitSignal = false, waitStep = false, waitUntil = false,
    })
  else
    head.status, head.startedAt, known.is_first = 'running', stamp, true
    redis.call('HSET', at, 'status', 'running', 'startedAt', stamp)
    if lane.epochs then redis.call('HSET', at, 'epochs', lane.epochs) end
  end

  -- A lane that goes on is looked at when its lease would have ended: that is early enough.
  if not lane.leaseUntil or is_lapsed(lane) or lease_until < tonumber(lane.leaseUntil) then
    attend(session_id, whole(lease_until))
  end
  -- At least the clock: neither a lane made anew nor a server without its last seconds gives a fence twice.
  lane.fence = whole(math.max((lane.fence or 0) + 1, now))
  redis.call('HSET', lane_key(session_id),
    'head', head.id, 'fence', lane.fence, 'holder', claim.holder, 'leaseUntil', whole(lease_until))
  if lane.offers then redis.call('HDEL', lane_key(session_id), 'offers') end
  return claimed_reply(session_id, lane, head, claim, known)
end

-- A turn whose worker was lost gets another attempt unless it was to end anyway, or lapsed too often.
local function may_go_on(head, max_attempts)
  local mode = end_before_next_attempt(head)
  if mode then
    stop_turn(head, mode)
    return false
  end
  local failures = (head.failures or 0) + 1
  if failures < max_attempts then
    head.failures = failures
    return true
  end
  local lost = '{"name":"WorkerLostError","code":"WORKER_LOST","message":"The worker that ran the turn was lost; '
    .. 'the turn was attempted ' .. failures .. ' times."}'
  -- What the attempt before said is the better answer to why.
  end_turn(head, 'failed', 'failures', failures, 'error', head.error or lost)
  return false
end

-- The head when it is due and nobody holds it with a live lease, else false.
local function claim_lane(session_id, claim)
  local lane = read_lane(session_id)
  while lane.head do
    local head = read_turn(lane.head)
    if is_held_by(lane, claim) then return claimed_reply(session_id, lane, head, claim, {}) end
    local is_free = is_due(head)
    if lane.leaseUntil then is_free = is_lapsed(lane) end
    if not is_free or is_paused(session_id, lane) then return false end
    if not lane.leaseUntil or may_go_on(head, claim.max_attempts) then
      return begin_attempt(session_id, lane, head, claim, {})
    end
    drop_head(session_id, lane)
    rest_lane(session_id, lane)
  end
  return false
end
`;

/** TurnLedger.claim. ARGV: session, then what claim_from takes. */
export const CLAIM = script(
  'claim',
  [CONTENTS, DOCUMENTS, LANE, ATTEMPT],
  /* lua */ `
return { 1, claim_lane(ARGV[1], claim_from(2)) }
`,
);
