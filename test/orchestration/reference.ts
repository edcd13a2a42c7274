import { type OrchestrationCondition, type OrchestrationStep, type SequenceItem } from 'nestjs-agent-sessions';

/** A use of a tool as a test asks for it. */
export interface ReferenceUse {
  readonly tool: string;
  readonly failed: boolean;
  readonly message?: string;
}

export interface ReferenceState {
  readonly activeStep: string | undefined;
  readonly sequenceIndex: number;
  readonly recentlyUsedTools: readonly string[];
  readonly history: readonly { readonly tool: string; readonly step: string | undefined; readonly failed: boolean }[];
}

/**
 * A simple implementation of the specification's rules, independent of the package. It applies one use after another and
 * searches the full history. It supports up to 100 uses.
 */
export class ReferencePlan {
  private active: string | undefined;
  private readonly done: Record<string, number> = {};
  private readonly history: { tool: string; step: string | undefined; failed: boolean }[] = [];

  constructor(private readonly steps: readonly OrchestrationStep[]) {}

  use({ tool, failed, message }: ReferenceUse): void {
    const byDefault = this.steps.find((step) => step.isDefault)?.name;
    this.active ??= byDefault;
    this.history.push({ tool, step: this.active, failed });
    const step = this.steps.find(({ name }) => name === this.active);
    if (step?.sequence && !failed) {
      if (step.resetSequenceOn?.includes(tool)) this.done[step.name] = 0;
      const index = this.done[step.name] ?? 0;
      const item = step.sequence.findIndex((each, at) => at >= index && names(each).includes(tool));
      const skipped = step.sequence.slice(index, item);
      if (item >= 0 && skipped.every((each) => typeof each === 'object' && 'optional' in each)) {
        this.done[step.name] = item + 1;
        if (item + 1 === step.sequence.length && step.onComplete !== undefined) {
          this.done[step.name] = 0;
          this.active = step.onComplete;
          return;
        }
      }
    }
    for (const candidate of this.steps) {
      if (candidate.isDefault || !candidate.conditions) continue;
      if (candidate.conditions.every((condition) => this.holds(condition, candidate, message) === true)) {
        this.active = candidate.name;
        return;
      }
    }
  }

  get state(): ReferenceState {
    const used = this.history.filter(({ failed }) => !failed).map(({ tool }) => tool);
    return {
      activeStep: this.active,
      sequenceIndex: this.active === undefined ? 0 : (this.done[this.active] ?? 0),
      recentlyUsedTools: [...new Set(used.reverse())].slice(0, 10),
      history: this.history,
    };
  }

  /** @returns `undefined` if it depends on a message that does not come with the use (FIX-22) */
  private holds(
    condition: OrchestrationCondition,
    step: OrchestrationStep,
    message: string | undefined,
  ): boolean | undefined {
    const used = this.history.filter(({ failed }) => !failed).map(({ tool }) => tool);
    const failed = this.history.filter((use) => use.failed).map(({ tool }) => tool);
    switch (condition.type) {
      case 'tool_used':
        return [...new Set([...used].reverse())].slice(0, 10).includes(condition.value);
      case 'last_tool':
        return used[used.length - 1] === condition.value;
      case 'tool_count':
        return used.filter((tool) => tool === condition.value).length >= condition.count;
      case 'tool_failed':
        return failed.filter((tool) => tool === condition.value).length >= (condition.count ?? 1);
      case 'sequence_match':
        return spellings(step.sequence ?? []).some(
          (spelling) =>
            spelling.length <= used.length && spelling.join() === used.slice(used.length - spelling.length).join(),
        );
      case 'message_matches':
        if (message === undefined) return step.name === this.active ? false : undefined;
        return new RegExp(condition.value, condition.flags).test(message);
      case 'any_of': {
        const answers = condition.conditions.map((each) => this.holds(each, step, message));
        return answers.includes(true) || (answers.includes(undefined) ? undefined : false);
      }
      case 'not': {
        const answer = this.holds(condition.condition, step, message);
        return answer === undefined ? undefined : !answer;
      }
      case 'tokens_over':
      case 'predicate':
        return false;
    }
  }
}

/** All orders of tools that a sequence allows. */
function spellings([first, ...rest]: readonly SequenceItem[]): string[][] {
  if (first === undefined) return [[]];
  const after = spellings(rest);
  const taken = names(first).flatMap((tool) => after.map((tools) => [tool, ...tools]));
  return typeof first === 'object' && 'optional' in first ? [...taken, ...after] : taken;
}

function names(item: SequenceItem): readonly string[] {
  if (typeof item === 'string') return [item];
  return 'anyOf' in item ? item.anyOf : [item.optional];
}
