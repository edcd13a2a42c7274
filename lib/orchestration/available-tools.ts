import { type OrchestrationStep } from './orchestration-config.js';
import { isUnfinished, nextTools } from './tool-sequence.js';

/** The tools that a step has now, in the order in which they are given (ORC-24, then ORC-22). */
export function availableTools(
  step: OrchestrationStep | undefined,
  index: number,
  tools: readonly string[],
): readonly string[] {
  return tools.filter((tool) => isAvailable(step, index, tool));
}

export function isAvailable(step: OrchestrationStep | undefined, index: number, tool: string): boolean {
  return step === undefined || (isPermitted(step, tool) && isInSequence(step, index, tool));
}

/** By `availableTools` alone: allowed, and not denied. */
export function isPermitted(
  { availableTools: { allowed, denied = [] } = {} }: OrchestrationStep,
  tool: string,
): boolean {
  return (allowed === undefined || matchesAny(tool, allowed)) && !matchesAny(tool, denied);
}

/** By the sequence alone. A tool that starts it over is in it at any time. */
export function isInSequence(
  { sequence, resetSequenceOn = [] }: Pick<OrchestrationStep, 'sequence' | 'resetSequenceOn'>,
  index: number,
  tool: string,
): boolean {
  return !isUnfinished(sequence, index) || nextTools(sequence, index).includes(tool) || resetSequenceOn.includes(tool);
}

/** What a refusal says of what is allowed: the next tools of an unfinished sequence, else the patterns of the step. */
export function describeAvailable(
  step: OrchestrationStep,
  index: number,
): { readonly allowed: readonly string[]; readonly denied: readonly string[] } {
  const { availableTools: { allowed = ['*'], denied = [] } = {}, sequence, resetSequenceOn = [] } = step;
  if (!isUnfinished(sequence, index)) return { allowed, denied };
  const next = [...nextTools(sequence, index), ...resetSequenceOn].filter((tool) => isPermitted(step, tool));
  return { allowed: [...new Set(next)], denied: [] };
}

function matchesAny(tool: string, patterns: readonly string[]): boolean {
  return patterns.some((pattern) => matches(tool, pattern));
}

/** `*` at the beginning, at the end or at both stands for any characters. */
function matches(tool: string, pattern: string): boolean {
  if (pattern === '*') return true;
  const open = pattern.startsWith('*');
  const ended = pattern.endsWith('*');
  const text = pattern.slice(open ? 1 : 0, ended ? -1 : undefined);
  if (open && ended) return tool.includes(text);
  if (open) return tool.endsWith(text);
  return ended ? tool.startsWith(text) : tool === text;
}
