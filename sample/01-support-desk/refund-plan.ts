import { type OrchestrationCondition, type OrchestrationStep } from 'nestjs-agent-sessions';

/** What the desk can do besides talking. */
export const TOOLS = ['begin_refund', 'choose_order', 'note_reason', 'drop_refund', 'pay_out'] as const;

const reasonNoted: OrchestrationCondition = { type: 'last_tool', value: 'note_reason' };
const saidYes: OrchestrationCondition = { type: 'message_matches', value: '^\\s*yes\\b', flags: 'i' };

/**
 * How a refund is talked through. Each step allows the tools in its sequence and no other: money goes out in one step only,
 * and that one needs a yes in the message at hand.
 */
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
