import { type Call } from './calls.js';
import { type Attempt, type Grant, type TurnRun } from './run.js';

/** Formats names in violations, so that readers find them in the history files. Times are the `at` of their lines. */
export const show = {
  call(call: Call): string {
    const fence = 'fence' in call.args ? `, fence ${call.args.fence}` : '';
    const answered = Number.isFinite(call.answeredAt) ? String(call.answeredAt) : 'unknown';
    return `${call.op} by ${call.process} (call ${call.call}${fence}, ${call.sentAt}..${answered})`;
  },

  grant({ position, turnId, fence, process, firstSentAt, answeredAt }: Grant): string {
    return `the claim of turn ${turnId} (position ${position}) with fence ${fence} by ${process} (${firstSentAt}..${answeredAt})`;
  },

  attempt({ attempt, turnId, grant, process, beganAt, endedAt }: Attempt): string {
    const ended = Number.isFinite(endedAt) ? String(endedAt) : 'unknown';
    return `handler ${attempt} of turn ${turnId}, fence ${grant?.fence ?? 'unknown'}, in ${process} (${beganAt}..${ended})`;
  },

  turn({ turnId, sessionId, stored }: TurnRun): string {
    return `session ${sessionId}, turn ${turnId}${stored ? ` (position ${stored.position}, ${stored.status})` : ''}`;
  },
};
