import { defineStepPlan, type OrchestrationCondition, type OrchestrationStep } from 'nestjs-agent-sessions';

/** The tools that change nothing. */
export const LOOK_UPS = [
  'get_user_details',
  'get_reservation_details',
  'search_direct_flight',
  'search_onestop_flight',
  'list_all_airports',
  'calculate',
  'think',
] as const;
export const ACTIONS = [
  'book_reservation',
  'update_reservation_flights',
  'update_reservation_baggages',
  'update_reservation_passengers',
  'cancel_reservation',
  'send_certificate',
] as const;
export const HAND_OVER = 'transfer_to_human_agents';
/** All tools that the model may call. */
export const TOOLS: readonly string[] = [...LOOK_UPS, ...ACTIONS, HAND_OVER];

const identified: OrchestrationCondition = { type: 'tool_used', value: 'get_user_details' };
/** Matches a sentence that begins with yes, when a turn begins. A button is safer, as is a predicate that asks a model. */
const saidYes: OrchestrationCondition = { type: 'message_matches', value: '(^|[.!?]\\s+)yes\\b', flags: 'i' };

/**
 * The airline's policy: identify the user, look up the reservation, list the details and ask, and perform one action per yes. The first
 * step whose conditions hold is active. If none matches, the previous step stays active.
 */
export const AIRLINE_STEPS: readonly OrchestrationStep[] = [
  {
    name: 'identify',
    description: 'Ask for the user id and look the user up.',
    isDefault: true,
    sequence: ['get_user_details'],
    onComplete: 'look-up',
    resetSequenceOn: ['think', HAND_OVER],
  },
  {
    name: 'transferred',
    description: 'A human has taken over. Say so, and do nothing else.',
    conditions: [{ type: 'tool_used', value: HAND_OVER }],
    availableTools: { denied: ['*'] },
  },
  {
    name: 'act',
    description: 'The user has said yes: do one thing, the one that was listed. Look up before what is needed for it.',
    conditions: [identified, saidYes],
    sequence: [{ anyOf: ACTIONS }],
    onComplete: 'report',
    resetSequenceOn: [...LOOK_UPS, HAND_OVER],
  },
  {
    name: 'look-up',
    description: 'Look up what it is about, list the details of what you would do, and ask for a yes.',
    conditions: [identified, { type: 'not', condition: saidYes }],
    availableTools: { denied: ACTIONS },
  },
  {
    name: 'report',
    description: 'The yes is used up. Say what was done; before anything else is done, ask for another yes.',
    availableTools: { denied: ACTIONS },
  },
];

/** The plan, which is also the `steps` of the agent `airline`. */
export const AIRLINE_PLAN = defineStepPlan({ agent: 'airline', steps: AIRLINE_STEPS });
