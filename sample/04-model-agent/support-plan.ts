import { type OrchestrationCondition, type OrchestrationStep } from 'nestjs-agent-sessions';

const saidYes: OrchestrationCondition = { type: 'message_matches', value: '(^|[.!?]\\s+)yes\\b', flags: 'i' };

/** Requires a look-up of the order before a refund, and a yes for each payment, whichever tools the model calls. */
export const SUPPORT_STEPS: readonly OrchestrationStep[] = [
  {
    name: 'look up',
    description: 'Find the order.',
    isDefault: true,
    availableTools: { denied: ['refund_order'] },
  },
  {
    name: 'refund',
    description: 'The user has said yes: refund the order that was found last, once.',
    conditions: [{ type: 'last_tool', value: 'find_order' }, saidYes],
    sequence: ['refund_order'],
    onComplete: 'look up',
    resetSequenceOn: ['find_order'],
  },
  {
    name: 'ask',
    description: 'Find the order. Before a refund say what you would refund, and ask for a yes.',
    conditions: [{ type: 'not', condition: saidYes }],
    availableTools: { denied: ['refund_order'] },
  },
];
