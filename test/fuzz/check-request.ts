import { type Principal, type StateOperationResult } from 'nestjs-agent-sessions';
import { type FuzzRequest } from './fuzz-request.js';
import { type FuzzAnswer, type FuzzSession, type FuzzTarget, principalIn } from './target.js';

const STATE = /^\/state\/(describe|reset|compact)$/;
/** By method. */
const ROUTES: Readonly<Record<string, RegExp>> = {
  GET: /^\/(sessions|turns)(\?.*)?$|^\/sessions\/current$|^\/turns\/[\w-]{1,100}(\/events)?$/,
  POST: /^\/(sessions|turns|sessions\/revoke|state\/(describe|reset|compact))$|^\/turns\/[\w-]{1,100}\/cancel$/,
  PATCH: /^\/sessions\/current$/,
  DELETE: /^\/sessions\/current$/,
};
const DONE = [200, 201, 202, 204];
const REFUSALS = [400, 401, 403, 404, 409, 410, 413, 414, 415, 422, 429];

/** What a request did. */
interface Outcome {
  readonly answer: FuzzAnswer;
  readonly changed: readonly FuzzSession[];
  /** The ids of sessions that were not there before. */
  readonly created: readonly string[];
}

/**
 * Sends it, and checks what must hold of any request. Puts back what it changed.
 * @returns the status
 * @throws Error that says what does not hold
 */
export async function checkRequest(target: FuzzTarget, request: FuzzRequest): Promise<number> {
  const outcome = await ask(target, request);
  const { answer } = outcome;
  if (answer.text.includes('hunter2')) throw new Error(`What is not for clients was shown. ${answer.text}`);
  if (DONE.includes(answer.status)) {
    if (/^\/state/i.test(request.path)) checkStateDone(request, outcome);
    else checkDone(target, request, outcome);
  } else {
    checkRefused(request, outcome);
    await checkStrangers(target, request, answer);
  }
  return answer.status;
}

async function ask(target: FuzzTarget, request: FuzzRequest): Promise<Outcome> {
  const before = await target.contents();
  target.takeTold();
  const answer = await target.send(request);
  const after = await target.contents();
  const changed = target.sessions.filter(({ id }) => before.get(id) !== after.get(id));
  const created = [...after.keys()].filter((id) => !before.has(id));
  for (const id of created) await target.drop(id);
  for (const session of changed) await target.put(session);

  const told = target.takeTold();
  const isCall = request.method === 'POST' && STATE.test(request.path);
  if (isCall && told !== 1) throw new Error(`The audit told of it ${told} times.`);
  return { answer, changed, created };
}

function checkRefused({ method, path }: FuzzRequest, { answer, changed, created }: Outcome): void {
  const { status, type, text } = answer;
  if (!REFUSALS.includes(status)) throw new Error(`${status} ${text}`);
  if (changed.length + created.length > 0) throw new Error(`${status}, and something was changed. ${text}`);
  if (method === 'HEAD') return;
  if (!/^application\/(problem\+)?json/.test(type)) throw new Error(`An answer of the type ${type}.`);
  // What is no route of this package is refused by Nest.
  if (!ROUTES[method]?.test(path)) return;
  const { code } = JSON.parse(text) as { code?: unknown };
  if (typeof code !== 'string') throw new Error(`No code. ${text}`);
}

/** What is somebody else's is refused in the same words as what there is not. */
async function checkStrangers(target: FuzzTarget, request: FuzzRequest, answer: FuzzAnswer): Promise<void> {
  const principal = principalIn(request.headers);
  // An operator may do more.
  if (!principal || principal.capabilities?.includes('state.operator')) return;
  const strangers = target.withStrangers(request, ({ owner }) => isSame(owner, principal));
  const sent = JSON.stringify(strangers);
  if (sent === JSON.stringify(request)) return;
  const { answer: other } = await ask(target, strangers);
  const plain = (text: string): string => text.replaceAll(/[0-9a-f]{32}/g, '-');
  // What is no route of this package is answered by Nest, which may repeat what was sent.
  const isOurs = answer.text.includes('"code":');
  if (other.status !== answer.status || (isOurs && plain(other.text) !== plain(answer.text))) {
    throw new Error(`${answer.status} ${answer.text}, but ${other.status} ${other.text} for what there is not.`);
  }
}

/** Of sessions and turns. */
function checkDone(target: FuzzTarget, request: FuzzRequest, { answer, changed, created }: Outcome): void {
  const { method, path, headers } = request;
  const principal = principalIn(headers);
  if (method === 'OPTIONS') {
    if (changed.length + created.length > 0) throw new Error('OPTIONS changed something.');
    return;
  }
  if (!principal) throw new Error(`${answer.status} for nobody.`);
  const isRead = method === 'GET' || method === 'HEAD';
  if (isRead && changed.length > 0) throw new Error('What only reads changed something.');
  const creates = method === 'POST' && /^\/sessions\/?$/i.test(path);
  if (created.length !== (creates ? 1 : 0)) throw new Error(`${created.length} sessions were made.`);
  // A surface may leave another session of the user's.
  const many = creates || /revoke/i.test(path);
  for (const { id, owner } of changed) {
    if (!isSame(owner, principal)) throw new Error(`Somebody else's session was changed: ${id}.`);
    if (!many && target.withIds(headers['x-session-id'] ?? '') !== id)
      throw new Error(`Another session was changed: ${id}.`);
  }
  for (const { id, owner } of target.sessions) {
    if (!isSame(owner, principal) && withoutSaid(answer.text).includes(id))
      throw new Error(`Somebody else's session was shown: ${id}.`);
  }
}

/** An answer without what clients said themselves, in which any id may stand. */
function withoutSaid(text: string): string {
  const lines = text.split('\n').map((line) => {
    try {
      return JSON.stringify(
        JSON.parse(line.replace(/^data: /, ''), (key, value: unknown) => (SAID.has(key) ? null : value)),
      );
    } catch {
      return line;
    }
  });
  return lines.join('\n');
}

const SAID: ReadonlySet<string> = new Set(['metadata', 'attachedSurfaces', 'reply', 'data']);

function isSame(one: Principal, other: Principal): boolean {
  return one.userId === other.userId && one.workspaceId === other.workspaceId;
}

/** Of the control plane. */
function checkStateDone({ headers }: FuzzRequest, { answer: { text }, changed, created }: Outcome): void {
  const { operation, sessionId, errors } = JSON.parse(text) as StateOperationResult;
  const principal = principalIn(headers);
  const may = (capability: string): boolean => principal?.capabilities?.includes(capability) ?? false;

  if (!principal || !may(`state.${operation}`)) throw new Error(`${operation} without the capability.`);
  if (errors.length > 0) throw new Error(`Done with errors. ${text}`);
  if (created.length > 0) throw new Error('A session was made.');
  if (operation === 'describe' && changed.length > 0) throw new Error('A description changed something.');
  for (const { id, owner } of changed) {
    const isOperator = may('state.operator');
    if (sessionId === null ? !isOperator : sessionId !== id) throw new Error(`Another session was changed: ${id}.`);
    if (sessionId === null || isOperator) continue;
    if (!isSame(owner, principal)) throw new Error(`Somebody else's session was changed: ${id}.`);
  }
}
