import { type StateOperationResult } from 'nestjs-agent-sessions';
import { type FuzzRequest } from './requests.js';
import { type FuzzAnswer, type FuzzTarget, principalIn } from './target.js';

const ROUTE = /^\/state\/(describe|reset|compact)$/;
const REFUSALS = [400, 401, 403, 404, 409, 413, 415, 422];

/**
 * Sends it, and checks what must hold of any request. Puts back what it changed.
 * @returns the status
 * @throws Error that says what does not hold
 */
export async function checkRequest(target: FuzzTarget, request: FuzzRequest): Promise<number> {
  const before = await target.contents();
  target.takeTold();
  const answer = await target.send(request);
  const after = await target.contents();
  const changed = target.sessions.filter((_, index) => before[index] !== after[index]);
  for (const { id } of changed) await target.fill(id);

  const told = target.takeTold();
  if (answer.status === 200) {
    checkDone(request, answer, changed);
    if (told !== 1) throw new Error(`The audit told of it ${told} times.`);
    return 200;
  }
  if (!REFUSALS.includes(answer.status)) throw new Error(`${answer.status} ${answer.text}`);
  if (changed.length > 0) throw new Error(`${answer.status}, and something was changed. ${answer.text}`);
  if (!/^application\/(problem\+)?json/.test(answer.type)) throw new Error(`An answer of the type ${answer.type}.`);
  // What is no route of the control plane is refused by Nest.
  if (request.method === 'POST' && ROUTE.test(request.path)) {
    const { code } = JSON.parse(answer.text) as { code?: unknown };
    if (typeof code !== 'string') throw new Error(`No code. ${answer.text}`);
    if (told !== 1) throw new Error(`The audit told of it ${told} times.`);
  }
  return answer.status;
}

function checkDone({ headers }: FuzzRequest, { text }: FuzzAnswer, changed: FuzzTarget['sessions']): void {
  const { operation, sessionId, errors } = JSON.parse(text) as StateOperationResult;
  const principal = principalIn(headers);
  const may = (capability: string): boolean => principal?.capabilities?.includes(capability) ?? false;

  if (!may(`state.${operation}`)) throw new Error(`${operation} without the capability.`);
  if (errors.length > 0) throw new Error(`200 with errors. ${text}`);
  if (text.includes('hunter2')) throw new Error('A secret was shown.');
  if (operation === 'describe' && changed.length > 0) throw new Error('A description changed something.');
  for (const { id, owner } of changed) {
    const isOperator = may('state.operator');
    if (sessionId === null ? !isOperator : sessionId !== id) throw new Error(`Another session was changed: ${id}.`);
    if (sessionId === null || isOperator) continue;
    const own = owner.userId === principal?.userId && owner.workspaceId === principal.workspaceId;
    if (!own) throw new Error(`Somebody else's session was changed: ${id}.`);
  }
}
