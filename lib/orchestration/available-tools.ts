import { type OrchestrationStep } from './orchestration-config.js';
import { isUnfinished, nextTools } from './tool-sequence.js';

/** Returns the given tools that a step allows now, in their order (ORC-24, then ORC-22). */
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

/** Checks only `availableTools`: the tool must be allowed, and not denied. */
export function isPermitted(
  { availableTools: { allowed, denied = [] } = {} }: OrchestrationStep,
  tool: string,
): boolean {
  return (allowed === undefined || matchesAny(tool, allowed)) && !matchesAny(tool, denied);
}

/** Checks only the sequence. Tools that restart it are always allowed. */
export function isInSequence(
  { sequence, resetSequenceOn = [] }: Pick<OrchestrationStep, 'sequence' | 'resetSequenceOn'>,
  index: number,
  tool: string,
): boolean {
  return !isUnfinished(sequence, index) || nextTools(sequence, index).includes(tool) || resetSequenceOn.includes(tool);
}

/**
 * Returns the allowed tools for an error: the next tools of an unfinished sequence, otherwise the patterns of the step.
 */
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

/** Matches a pattern. `*` at the beginning, at the end or at both matches any characters. */
function matches(tool: string, pattern: string): boolean {
  if (pattern === '*') return true;
  const open = pattern.startsWith('*');
  const ended = pattern.endsWith('*');
  const text = pattern.slice(open ? 1 : 0, ended ? -1 : undefined);
  if (open && ended) return tool.includes(text);
  if (open) return tool.endsWith(text);
  return ended ? tool.startsWith(text) : tool === text;
}
