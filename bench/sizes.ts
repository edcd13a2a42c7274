/** The amounts of a measurement. */
export interface Sizes {
  readonly rounds: number;
  /** The sizes of the store that others are compared with. */
  readonly few: number;
  readonly many: number;
  /** Turns in a round of PRF-07, and finds of PRF-09. */
  readonly operations: number;
  readonly sweep: {
    readonly stale: number;
    /** Sessions of the smaller store, including stale ones. */
    readonly among: number;
  };
  readonly history: {
    readonly sessions: number;
    /** The history lengths to compare. */
    readonly short: number;
    readonly long: number;
    /** Enough turns that every following one prunes a checkpoint. */
    readonly pruning: number;
    /** Turns per session and round. */
    readonly turns: number;
  };
  /** No-op turns through the queues. */
  readonly lanes: {
    readonly sessions: number;
    /** Turns per session. */
    readonly turns: number;
    /** Sequential turns per round. */
    readonly idle: { readonly sessions: number; readonly turns: number };
    /** Turns of one session, and sessions with one turn each. */
    readonly unfair: { readonly hot: number; readonly others: number };
  };
  /** Whole turns per caller and round, by the number of callers. */
  readonly jobs: Readonly<Record<1 | 8 | 32, number>>;
  /** Turns per session and round, for peers without a bound. */
  readonly peers: { readonly sessions: number; readonly turns: number };
  /** New processes of each kind per round. */
  readonly starts: number;
  /** Answers per round. */
  readonly answers: number;
  readonly streams: { readonly readers: number; readonly tokens: number };
  /** The turns of every kind in every session. */
  readonly memory: {
    readonly sessions: number;
    /** Sequential turns of each kind per session. */
    readonly samples: number;
    /** Samples that do not count. */
    readonly warmUp: number;
  };
  readonly growth: {
    /** Slices of each point per round. */
    readonly operations: number;
    readonly turns: readonly number[];
    readonly messages: readonly number[];
    readonly bytes: readonly number[];
    /** Stored sessions, besides `few` and `many`. */
    readonly stored: readonly number[];
    /** Lanes with a waiting turn. */
    readonly lanes: readonly number[];
    /** Readers of one stream, and its tokens. */
    readonly readers: readonly number[];
    readonly tokens: number;
    /** Processes that run turns, callers, and turns per caller. */
    readonly workers: readonly number[];
    readonly callers: { readonly count: number; readonly turns: number };
  };
}

export const FULL: Sizes = {
  rounds: 7,
  few: 1000,
  many: 1_000_000,
  operations: 1000,
  sweep: { stale: 10_000, among: 20_000 },
  history: { sessions: 20, short: 10, long: 1000, pruning: 110, turns: 10 },
  lanes: { sessions: 1000, turns: 10, idle: { sessions: 100, turns: 10 }, unfair: { hot: 1000, others: 100 } },
  jobs: { 1: 300, 8: 100, 32: 50 },
  peers: { sessions: 32, turns: 20 },
  starts: 5,
  answers: 50,
  streams: { readers: 100, tokens: 2000 },
  memory: { sessions: 1000, samples: 10, warmUp: 1 },
  growth: {
    operations: 100,
    turns: [10, 30, 100, 300, 1000, 3000, 10_000],
    messages: [10, 100, 1000, 10_000, 100_000],
    bytes: [1000, 3000, 10_000, 30_000, 100_000, 250_000],
    stored: [10_000, 100_000],
    lanes: [100, 1000, 10_000, 100_000],
    readers: [1, 10, 30, 100, 300],
    tokens: 400,
    workers: [1, 2, 4],
    callers: { count: 128, turns: 10 },
  },
};

/** Amounts for a check that everything works. Each contestant runs twice, because of the warm-up round. */
export const QUICK: Sizes = {
  rounds: 1,
  few: 100,
  many: 2000,
  operations: 100,
  sweep: { stale: 600, among: 1200 },
  history: { sessions: 4, short: 10, long: 150, pruning: 105, turns: 5 },
  lanes: { sessions: 20, turns: 5, idle: { sessions: 5, turns: 4 }, unfair: { hot: 50, others: 10 } },
  jobs: { 1: 20, 8: 10, 32: 5 },
  peers: { sessions: 4, turns: 3 },
  starts: 1,
  answers: 5,
  streams: { readers: 5, tokens: 100 },
  memory: { sessions: 20, samples: 4, warmUp: 1 },
  growth: {
    operations: 5,
    turns: [10, 150],
    messages: [10, 1000],
    bytes: [1000, 100_000],
    stored: [400],
    lanes: [100, 400],
    readers: [1, 5],
    tokens: 50,
    workers: [1, 2],
    callers: { count: 32, turns: 3 },
  },
};
