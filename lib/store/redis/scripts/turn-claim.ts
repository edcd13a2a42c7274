import { CONTENTS } from './contents.js';
import { DOCUMENTS } from './documents.js';
import { LANE } from './lane.js';
import { script } from './script.js';

/** The claim of a lane's head, alone and at the end of a settle. Needs LANE and DOCUMENTS. */
export const CLAIM_TURN = /* lua */ `
-- What the client knows is not sent again: the session, and when its checkpoint was written.
local function claimed_reply(lane, turn, request, known)
  local session_id, orchestrator = turn.sessionId, turn.orchestrator
  return {
    lane.fence,
    turn_reply(turn),
    not known.session and redis.call('HGETALL', key('session', session_id)),
    known.checkpoint_of == orchestrator and now or latest_checkpoint(orchestrator, session_id),
    read_window(session_id, request.windows[orchestrator] or 0),
    redis.call('HGETALL', key('steps', turn.id)),
    live_documents(request.documents and request.documents[orchestrator] or {}),
    lane.epochs or false,
  }
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
  end_turn(head, 'failed', { failures = failures, error = head.error or lost })
  return false
end

-- The head when it is due and nobody holds it with a live lease, else nil; known.lane is a lane that was read.
local function claim_turn(session_id, request, known)
  local lane = known.lane or read(key('lane', session_id))
  if not lane then return nil end
  local head = head_of(session_id)
  while head do
    local ready = true
    if head.status == 'running' then
      if not is_lapsed(lane) then
        -- The same claim sent twice gets the same answer.
        return lane.holder == request.holder and claimed_reply(lane, head, request, known) or nil
      end
    elseif not is_due(head) then
      return nil
    end
    if is_paused(session_id, lane) then return nil end
    if head.status == 'running' then
      ready = may_go_on(head, request.maxAttempts)
    elseif head.status == 'waiting' and head.waitStep then
      redis.call('HSETNX', key('steps', head.id), head.waitStep, '{"received":false}')
    end
    if ready then
      local lease_until, epochs = now + request.leaseMs, head.epochs
      if not has_begun(head) then epochs = lane.epochs end
      write(key('turn', head.id), head, {
        status = 'running', failures = head.failures or false, startedAt = head.startedAt or now, epochs = epochs or false,
        dueAt = false, waitSignal = false, waitStep = false, waitUntil = false,
      })
      write(key('lane', session_id), lane, {
        -- At least the clock: neither a lane made anew nor a server without its last seconds gives a fence twice.
        fence = math.max(lane.fence + 1, now), runningTurn = head.id, holder = request.holder, leaseUntil = lease_until, offers = false,
      })
      attend(session_id, lease_until)
      return claimed_reply(lane, head, request, known)
    end
    rest_lane(session_id, lane)
    head = head_of(session_id)
  end
  return nil
end
`;

export const CLAIM = script(
  'claim',
  [CONTENTS, DOCUMENTS, LANE, CLAIM_TURN],
  /* lua */ `
return { 1, claim_turn(ARGV[1], cjson.decode(ARGV[2]), {}) or false }
`,
);
