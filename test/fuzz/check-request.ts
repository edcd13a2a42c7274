import { type Principal } from 'nestjs-agent-sessions';
import { type StateOperationResult } from 'nestjs-agent-sessions/http';
import { type FuzzRequest } from './fuzz-request.js';
import { type FuzzAnswer, type FuzzSession, type FuzzTarget, principalIn } from './target.js';

const STATE = /^\/state\/(describe|reset|compact)$/;
/** Routes by method. */
const ROUTES: Readonly<Record<string, RegExp>> = {
  GET: /^\/(sessions|turns)(\?.*)?$|^\/sessions\/current$|^\/turns\/[\w-]{1,100}(\/events)?$/,
  POST: /^\/(sessions|turns|sessions\/revoke|state\/(describe|reset|compact))$|^\/turns\/[\w-]{1,100}\/cancel$/,
  PATCH: /^\/sessions\/current$/,
  DELETE: /^\/sessions\/current$/,
};
const DONE = [200, 201, 202, 204];
const REFUSALS = [400, 401, 403, 404, 409, 410, 413, 414, 415, 422, 429];

/** The effects of a request. */
interface Outcome {
  readonly answer: FuzzAnswer;
  readonly changed: readonly FuzzSession[];
  /** The ids of new sessions. */
  readonly created: readonly string[];
}

/**
 * Sends a request, checks the rules for all requests, and restores changed data.
 * @returns the status
 * @throws Error with the violated rule
 */
export async function checkRequest(target: FuzzTarget, request: FuzzRequest): Promise<number> {
  const outcome = await ask(target, request);
  const { answer } = outcome;
  if (answer.text.includes('hunter2')) throw new Error(`The response contains private data: ${answer.text}`);
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
  if (isCall && told !== 1) throw new Error(`Expected one audit event. Received: ${told}.`);
  return { answer, changed, created };
}

function checkRefused({ method, path }: FuzzRequest, { answer, changed, created }: Outcome): void {
  const { status, type, text } = answer;
  if (!REFUSALS.includes(status)) throw new Error(`${status} ${text}`);
  if (changed.length + created.length > 0) throw new Error(`A request with status ${status} changed data. ${text}`);
  if (method === 'HEAD') return;
  if (!/^application\/(problem\+)?json/.test(type))
    throw new Error(`The response must be JSON. Received content type: ${type}.`);
  // Nest rejects requests to other routes.
  if (!ROUTES[method]?.test(path)) return;
  const { code } = JSON.parse(text) as { code?: unknown };
  if (typeof code !== 'string') throw new Error(`The error has no code. ${text}`);
}

/** Foreign data gets the same error as missing data. */
async function checkStrangers(target: FuzzTarget, request: FuzzRequest, answer: FuzzAnswer): Promise<void> {
  const principal = principalIn(request.headers);
  // Operators have more permissions.
  if (!principal || principal.capabilities?.includes('state.operator')) return;
  const strangers = target.withStrangers(request, ({ owner }) => isSame(owner, principal));
  const sent = JSON.stringify(strangers);
  if (sent === JSON.stringify(request)) return;
  const { answer: other } = await ask(target, strangers);
  const plain = (text: string): string => text.replaceAll(/[0-9a-f]{32}/g, '-');
  // Nest answers other routes, and may repeat parts of the request.
  const isOurs = answer.text.includes('"code":');
  if (other.status !== answer.status || (isOurs && plain(other.text) !== plain(answer.text))) {
    throw new Error(
      `Foreign data: ${answer.status} ${answer.text}. Missing data: ${other.status} ${other.text}. They must be equal.`,
    );
  }
}

/** Checks a successful request to sessions and turns. */
function checkDone(target: FuzzTarget, request: FuzzRequest, { answer, changed, created }: Outcome): void {
  const { method, path, headers } = request;
  const principal = principalIn(headers);
  if (method === 'OPTIONS') {
    if (changed.length + created.length > 0) throw new Error('OPTIONS changed data.');
    return;
  }
  if (!principal) throw new Error(`Status ${answer.status} for a request without a principal.`);
  const isRead = method === 'GET' || method === 'HEAD';
  if (isRead && changed.length > 0) throw new Error('A read changed data.');
  const creates = method === 'POST' && /^\/sessions\/?$/i.test(path);
  if (created.length !== (creates ? 1 : 0)) throw new Error(`${created.length} sessions were created.`);
  // A surface may move from another session of the user.
  const many = creates || /revoke/i.test(path);
  for (const { id, owner } of changed) {
    if (!isSame(owner, principal)) throw new Error(`A session of another user was changed: ${id}.`);
    if (!many && target.withIds(headers['x-session-id'] ?? '') !== id)
      throw new Error(`Another session was changed: ${id}.`);
  }
  for (const { id, owner } of target.sessions) {
    if (!isSame(owner, principal) && withoutSaid(answer.text).includes(id))
      throw new Error(`A session of another user was returned: ${id}.`);
  }
}

/** Removes data of clients from a response, because it may contain any id. */
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

/** Checks a successful request to the control plane. */
function checkStateDone({ headers }: FuzzRequest, { answer: { text }, changed, created }: Outcome): void {
  const { operation, sessionId, errors } = JSON.parse(text) as StateOperationResult;
  const principal = principalIn(headers);
  const may = (capability: string): boolean => principal?.capabilities?.includes(capability) ?? false;

  if (!principal || !may(`state.${operation}`)) throw new Error(`${operation} without the capability.`);
  if (errors.length > 0) throw new Error(`The operation returned errors. ${text}`);
  if (created.length > 0) throw new Error('A session was created.');
  if (operation === 'describe' && changed.length > 0) throw new Error('A describe changed data.');
  for (const { id, owner } of changed) {
    const isOperator = may('state.operator');
    if (sessionId === null ? !isOperator : sessionId !== id) throw new Error(`Another session was changed: ${id}.`);
    if (sessionId === null || isOperator) continue;
    if (!isSame(owner, principal)) throw new Error(`A session of another user was changed: ${id}.`);
  }
}
