import { type OrchestrationStep } from 'nestjs-agent-sessions';

export const TOOLS = ['look', 'ask', 'drop'] as const;
/** What a session has taken before the run, one by one: so much was appended to its state that it is soon to be folded. */
export const TOKENS_BEFORE = 24;
const EITHER = { anyOf: ['look', 'ask'] };

/**
 * Steps that go on with every use of a tool and refuse none, so that a script may use any.
 * @param version is part of the plan, and decides nothing: so every version has a plan of its own, and all mean the same
 */
export function stepsOf(version: string): OrchestrationStep[] {
  return [
    {
      name: 'collect',
      description: `As of ${version}.`,
      isDefault: true,
      sequence: [EITHER, EITHER, EITHER],
      resetSequenceOn: ['drop'],
      onComplete: 'act',
    },
    { name: 'act', sequence: [EITHER], resetSequenceOn: ['drop'], onComplete: 'collect' },
    {
      name: 'recover',
      conditions: [{ type: 'last_tool', value: 'drop' }],
      sequence: [EITHER, EITHER],
      resetSequenceOn: ['drop'],
      onComplete: 'collect',
    },
  ];
}
