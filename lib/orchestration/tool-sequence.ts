import { type SequenceItem } from './orchestration-config.js';

/** Returns true while the sequence has remaining items. */
export function isUnfinished(sequence: readonly SequenceItem[] | undefined, index: number): boolean {
  return sequence !== undefined && index < sequence.length;
}

/**
 * Returns the tools that may come next: several in a group, and while an optional tool can be skipped. Empty if the
 * sequence is finished.
 */
export function nextTools(sequence: readonly SequenceItem[] = [], index: number): readonly string[] {
  const next: string[] = [];
  for (const item of sequence.slice(index)) {
    next.push(...toolsOf(item));
    if (!isOptional(item)) break;
  }
  return next;
}

/** @returns the index after a use of the tool, or `null` if the tool is not next */
export function indexAfter(sequence: readonly SequenceItem[] = [], index: number, tool: string): number | null {
  for (let at = index; at < sequence.length; at += 1) {
    const item = sequence[at];
    if (toolsOf(item).includes(tool)) return at + 1;
    if (!isOptional(item)) return null;
  }
  return null;
}

/** Returns true if the last uses match the whole sequence, in order (ORC-26). */
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
