import { type OrchestrationCondition, type OrchestrationStep } from 'nestjs-agent-sessions';

/** The tools of the desk. */
export const TOOLS = ['begin_refund', 'choose_order', 'note_reason', 'drop_refund', 'pay_out'] as const;

const reasonNoted: OrchestrationCondition = { type: 'last_tool', value: 'note_reason' };
const saidYes: OrchestrationCondition = { type: 'message_matches', value: '^\\s*yes\\b', flags: 'i' };

/** The plan of a refund. Each step allows only the tools in its sequence: one step pays money, and it requires a yes in the current message. */
export const REFUND_STEPS: readonly OrchestrationStep[] = [
  {
    name: 'help',
    description: 'Answer questions.',
    isDefault: true,
    availableTools: { allowed: ['begin_refund'] },
  },
  {
    name: 'order',
    description: 'Ask which order the refund is for.',
    conditions: [{ type: 'last_tool', value: 'begin_refund' }],
    sequence: ['choose_order'],
    onComplete: 'reason',
  },
  {
    name: 'reason',
    description: 'Ask why.',
    sequence: ['note_reason'],
    onComplete: 'confirm',
  },
  {
    name: 'confirm',
    description: 'Ask for a yes. Nothing is paid before it.',
    conditions: [reasonNoted, { type: 'not', condition: saidYes }],
    sequence: ['drop_refund'],
    onComplete: 'help',
  },
  {
    name: 'pay out',
    description: 'The customer has said yes: pay, once.',
    conditions: [reasonNoted, saidYes],
    sequence: ['pay_out'],
    onComplete: 'help',
  },
];
