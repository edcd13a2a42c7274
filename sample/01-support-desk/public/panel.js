const panel = document.getElementById('panel');
const turnsTable = document.getElementById('turns');
const noTurns = document.getElementById('no-turns');
const rows = new Map();

const wide = matchMedia('(min-width: 60rem)');
const fold = () => (panel.open = wide.matches);
wide.addEventListener('change', fold);
fold();

/** What the server says of the session, its plan and its lane. */
export function showPanel({ session, step, lane, turns }) {
  set('session-state', session.state);
  set('session-activity', new Date(session.lastActivityAt).toLocaleTimeString());
  set('session-surfaces', session.attachedSurfaces.join(', ') || 'none');
  set('step-name', step.name);
  set('step-description', step.description);
  set('step-tools', step.tools.join(', ') || 'none');
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

function describe(running) {
  if (!running) return 'nothing';
  return running.failures === 0 ? running.input : `${running.input} (try ${running.failures + 1})`;
}

/** The latest one first. */
function showTurn({ id, input, status, startedAt, settledAt, failures }) {
  if (rows.has(id)) return;
  const seconds = startedAt ? (Date.parse(settledAt) - Date.parse(startedAt)) / 1000 : 0;
  const row = turnsTable.tBodies[0].insertRow(0);
  for (const text of [input, status, `${seconds.toFixed(1)} s`, String(failures + 1)]) {
    row.insertCell().textContent = text;
  }
  rows.set(id, row);
  turnsTable.hidden = false;
  noTurns.hidden = true;
}

/** Only what has changed, so that a selection stays. */
function set(id, text) {
  const element = document.getElementById(id);
  if (element.textContent !== text) element.textContent = text;
}
