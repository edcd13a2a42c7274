import { type SequenceItem } from './orchestration-config.js';

/** Whether a sequence still says which tool is next. */
export function isUnfinished(sequence: readonly SequenceItem[] | undefined, index: number): boolean {
  return sequence !== undefined && index < sequence.length;
}

/** The tools that may come next: several in a group, and before an optional one is passed over. Empty: it is finished. */
export function nextTools(sequence: readonly SequenceItem[] = [], index: number): readonly string[] {
  const next: string[] = [];
  for (const item of sequence.slice(index)) {
    next.push(...toolsOf(item));
    if (!isOptional(item)) break;
  }
  return next;
}

/** @returns the index after a use of the tool, or `null` when it is not its turn */
export function indexAfter(sequence: readonly SequenceItem[] = [], index: number, tool: string): number | null {
  for (let at = index; at < sequence.length; at += 1) {
    const item = sequence[at];
    if (toolsOf(item).includes(tool)) return at + 1;
    if (!isOptional(item)) return null;
  }
  return null;
}

/** Whether the last uses are the whole sequence, in its order (ORC-26). */
export function endsWithSequence(tools: readonly string[], sequence: readonly SequenceItem[]): boolean {
  if (sequence.length === 0) return true;
  const item = sequence[sequence.length - 1];
  const before = sequence.slice(0, -1);
  const last = tools.at(-1);
  if (last !== undefined && toolsOf(item).includes(last) && endsWithSequence(tools.slice(0, -1), before)) return true;
  return isOptional(item) && endsWithSequence(tools, before);
}

export function toolsOf(item: SequenceItem): readonly string[] {
  if (typeof item === 'string') return [item];
  return 'anyOf' in item ? item.anyOf : [item.optional];
}

export function isOptional(item: SequenceItem): item is { readonly optional: string } {
  return typeof item === 'object' && 'optional' in item;
}
