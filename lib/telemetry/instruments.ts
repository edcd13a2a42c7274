interface Instrument {
  readonly unit: string;
  readonly description: string;
}

/** The counters. */
export const COUNTERS = {
  'agent_sessions.turn.accepted': { unit: '{turn}', description: 'Accepted turns.' },
  'agent_sessions.turn.settled': { unit: '{turn}', description: 'Turns settled by a worker.' },
  'agent_sessions.turn.retries': { unit: '{retry}', description: 'Failed attempts that are retried.' },
  'agent_sessions.store.conflicts': {
    unit: '{conflict}',
    description: 'Writes rejected because of a concurrent write.',
  },
  'agent_sessions.sweep.runs': { unit: '{run}', description: 'Started sweeps, by outcome.' },
  'agent_sessions.sweep.items': { unit: '{item}', description: 'Records that sweeps suspended, expired or deleted.' },
} as const satisfies Record<string, Instrument>;

export const UP_DOWN_COUNTERS = {
  'agent_sessions.streams': { unit: '{stream}', description: 'Connected readers of turn events.' },
} as const satisfies Record<string, Instrument>;

/** Histogram buckets for turns, which wait for models and for other turns of their lane. */
const LONG = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900];
/** Histogram buckets for databases, as in the semantic conventions. */
const SHORT = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10];

/** Durations in seconds. */
export const HISTOGRAMS = {
  'agent_sessions.turn.attempt.duration': {
    unit: 's',
    description: 'Duration of turn attempts.',
    boundaries: LONG,
  },
  'agent_sessions.lane.wait.duration': {
    unit: 's',
    description: 'Time from the acceptance of a turn to its first attempt.',
    boundaries: LONG,
  },
  'agent_sessions.store.operation.duration': {
    unit: 's',
    description: 'Duration of store operations.',
    boundaries: SHORT,
  },
} as const satisfies Record<string, Instrument & { readonly boundaries: readonly number[] }>;

export type CounterName = keyof typeof COUNTERS;
export type UpDownCounterName = keyof typeof UP_DOWN_COUNTERS;
export type HistogramName = keyof typeof HISTOGRAMS;
