import { type OrchestrationStep } from 'nestjs-agent-sessions';

export const TOOLS = ['look', 'ask', 'drop'] as const;
/** Tokens of a session before the run, added one by one, so that its state is folded soon. */
export const TOKENS_BEFORE = 24;
const EITHER = { anyOf: ['look', 'ask'] };

/**
 * Steps that allow every tool, so that a script may use any.
 * @param version makes the plans of versions differ without changing their meaning
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
