interface Instrument {
  readonly unit: string;
  readonly description: string;
}

/** What only grows. */
export const COUNTERS = {
  'agent_sessions.turn.accepted': { unit: '{turn}', description: 'Turns that were put into a lane.' },
  'agent_sessions.turn.settled': { unit: '{turn}', description: 'Turns that a worker brought to their end.' },
  'agent_sessions.turn.retries': { unit: '{retry}', description: 'Attempts that failed and are followed by another.' },
  'agent_sessions.store.conflicts': {
    unit: '{conflict}',
    description: 'Writes that the store refused because somebody else was first.',
  },
  'agent_sessions.sweep.runs': { unit: '{run}', description: 'Sweeps that were begun, by how they ended.' },
  'agent_sessions.sweep.items': { unit: '{item}', description: 'What sweeps suspended, expired or deleted.' },
} as const satisfies Record<string, Instrument>;

export const UP_DOWN_COUNTERS = {
  'agent_sessions.streams': { unit: '{stream}', description: 'Readers of turn events that are connected.' },
} as const satisfies Record<string, Instrument>;

/** Of turns that ask a model, and wait in a lane behind such turns. */
const LONG = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900];
/** As the conventions have it for databases. */
const SHORT = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10];

/** Durations in seconds. */
export const HISTOGRAMS = {
  'agent_sessions.turn.attempt.duration': {
    unit: 's',
    description: 'How long attempts of turns took.',
    boundaries: LONG,
  },
  'agent_sessions.lane.wait.duration': {
    unit: 's',
    description: 'From the acceptance of a turn to its first attempt.',
    boundaries: LONG,
  },
  'agent_sessions.store.operation.duration': {
    unit: 's',
    description: 'How long operations of the store took.',
    boundaries: SHORT,
  },
} as const satisfies Record<string, Instrument & { readonly boundaries: readonly number[] }>;

export type CounterName = keyof typeof COUNTERS;
export type UpDownCounterName = keyof typeof UP_DOWN_COUNTERS;
export type HistogramName = keyof typeof HISTOGRAMS;
