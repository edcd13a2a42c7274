import { ACTIONS, AIRLINE_STEPS, TOOLS } from './airline-plan.js';
import { type ReplayedTurn } from './conversation-runner.js';

export const OUTCOMES: readonly string[] = ['used', 'failed', ...AIRLINE_STEPS.map(({ name }) => refusedIn(name))];

/** Counts by tool: used calls, failed calls, and refused calls by step. */
export type Counts = Readonly<Record<string, Readonly<Record<string, number>>>>;

export function describeTurn({ said, from, to, allowed, results, answer }: ReplayedTurn): string {
  const calls = results.map(({ tool, step, outcome, content }) => {
    return outcome === 'used' ? `used    ${tool}, in ${step}` : `${outcome.padEnd(8)}${tool}: ${content}`;
  });
  const lines = [
    `user    ${said}`,
    `step    ${from}; allowed: ${summarize(allowed)}`,
    ...calls,
    ...(to === from ? [] : [`step    ${to}`]),
    `agent   ${answer}`,
  ];
  return `${lines.map((line) => `  ${line}`).join('\n')}\n`;
}

/** Returns a line for each refused call of a conversation. */
export function describeRefusals(conversation: string, turns: readonly ReplayedTurn[]): string[] {
  return turns.flatMap(({ said, results }, turn) =>
    results
      .filter(({ outcome }) => outcome === 'refused')
      .map(({ tool, step }) => `  ${conversation}, turn ${turn + 1}: ${tool}, in ${step}, after ${shortened(said)}`),
  );
}

/** Returns the reason for refusals in a step: the purpose of the step. */
export function reasons(): string[] {
  return AIRLINE_STEPS.map(({ name, description = '' }) => `  ${name.padEnd(12)}${description}`);
}

export function count(turns: readonly ReplayedTurn[]): Counts {
  const counts: Record<string, Record<string, number>> = {};
  for (const { tool, step, outcome } of turns.flatMap(({ results }) => results)) {
    const row = (counts[tool] ??= {});
    const column = outcome === 'refused' ? refusedIn(step) : outcome;
    row[column] = (row[column] ?? 0) + 1;
  }
  return Object.fromEntries(TOOLS.flatMap((tool) => (counts[tool] ? [[tool, counts[tool]]] : [])));
}

function refusedIn(step: string): string {
  return `refused in ${step}`;
}

function summarize(allowed: readonly string[]): string {
  const left = TOOLS.filter((tool) => !allowed.includes(tool));
  if (left.length === 0) return 'all tools';
  if (left.length === ACTIONS.length && ACTIONS.every((tool) => left.includes(tool))) return 'all tools but actions';
  return allowed.join(', ') || 'none';
}

function shortened(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}...` : text);
}
