const panel = document.getElementById('panel');
const steps = document.getElementById('plan');
const turnsTable = document.getElementById('turns');
const noTurns = document.getElementById('no-turns');
const rows = new Map();

/** The words of the page for the states of sessions and turns. */
const SESSION_STATES = { created: 'new', active: 'active', suspended: 'idle', expired: 'ended' };
const STATUSES = {
  'awaiting-input': 'answered',
  completed: 'answered',
  failed: 'failed',
  cancelled: 'stopped',
  superseded: 'replaced',
};

const wide = matchMedia('(min-width: 60rem)');
const fold = () => (panel.open = wide.matches);
wide.addEventListener('change', fold);
fold();

/** Shows the session, its plan and its lane. */
export function showPanel({ session, plan, step, lane, turns }) {
  set('session-state', SESSION_STATES[session.state]);
  set('session-activity', new Date(session.lastActivityAt).toLocaleTimeString());
  set('session-surfaces', session.attachedSurfaces.join(', ') || 'none');
  showPlan(plan, step.name);
  set('step-description', step.description);
  set('step-tools', step.tools.map((name) => name.replaceAll('_', ' ')).join(', ') || 'none');
  set('lane-running', describe(turns.find(({ status }) => status === 'running')));
  set('lane-queued', String(lane.queued));
  turns.filter(({ settledAt }) => settledAt).forEach(showTurn);
}

export function clearPanel() {
  rows.clear();
  turnsTable.tBodies[0].replaceChildren();
  turnsTable.hidden = true;
  noTurns.hidden = false;
}

function showPlan(plan, active) {
  if (steps.children.length === 0) steps.append(...plan.map(toItem));
  for (const step of steps.children) {
    if (step.textContent === active) step.setAttribute('aria-current', 'step');
    else step.removeAttribute('aria-current');
  }
}

function toItem(text) {
  const item = document.createElement('li');
  item.textContent = text;
  return item;
}

function describe(running) {
  if (!running) return 'nothing';
  const attempt = running.failures + running.lost + 1;
  return attempt === 1 ? running.input : `${running.input} (try ${attempt})`;
}

/** Shows the turns, the latest one first. */
function showTurn({ id, input, status, startedAt, settledAt, failures, lost }) {
  if (rows.has(id)) return;
  const ms = startedAt ? Date.parse(settledAt) - Date.parse(startedAt) : 0;
  const took = ms < 1000 ? `${ms} ms` : `${(ms / 1000).toFixed(1)} s`;
  const row = turnsTable.tBodies[0].insertRow(0);
  for (const text of [input, STATUSES[status], took, String(failures + lost + 1)]) {
    row.insertCell().textContent = text;
  }
  rows.set(id, row);
  turnsTable.hidden = false;
  noTurns.hidden = true;
}

/** Writes changed text only, so that a selection stays. */
function set(id, text) {
  const element = document.getElementById(id);
  if (element.textContent !== text) element.textContent = text;
}
