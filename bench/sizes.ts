/** How much is measured. */
export interface Sizes {
  readonly rounds: number;
  /** Sessions of the store that others are compared with. */
  readonly few: number;
  readonly many: number;
  /** Turns in a round of PRF-07, and finds of PRF-09. */
  readonly operations: number;
  readonly sweep: {
    readonly stale: number;
    /** Sessions of the smaller store, the stale ones among them. */
    readonly among: number;
  };
  readonly history: {
    readonly sessions: number;
    /** How many turns the sessions have that are compared. */
    readonly short: number;
    readonly long: number;
    /** Enough turns that each of the following ones prunes a checkpoint. */
    readonly pruning: number;
    /** Turns of each in a round. */
    readonly turns: number;
  };
  /** Turns that do nothing, through the queues. */
  readonly lanes: {
    readonly sessions: number;
    /** Of each session. */
    readonly turns: number;
    /** One after the other in a round. */
    readonly idle: { readonly sessions: number; readonly turns: number };
    /** Turns of one session, and sessions with one turn each. */
    readonly unfair: { readonly hot: number; readonly others: number };
  };
  /** Whole turns of a caller in a round, by how many callers there are. */
  readonly jobs: Readonly<Record<1 | 8 | 32, number>>;
  /** Of each session in a round, where peers are only told of. */
  readonly peers: { readonly sessions: number; readonly turns: number };
  /** New processes of each kind in a round. */
  readonly starts: number;
  readonly streams: { readonly readers: number; readonly tokens: number };
  /** Turns of every kind in every session, again and again. */
  readonly memory: {
    readonly sessions: number;
    /** Each after another turn of each kind in each session. */
    readonly samples: number;
    /** Samples that do not count. */
    readonly warmUp: number;
  };
  readonly growth: {
    /** Of each point in a round. */
    readonly operations: number;
    readonly turns: readonly number[];
    readonly messages: readonly number[];
    readonly bytes: readonly number[];
    /** Sessions that are stored, beside `few` and `many`. */
    readonly stored: readonly number[];
    /** Lanes that have a turn waiting. */
    readonly lanes: readonly number[];
    /** Of one stream, which makes so many tokens. */
    readonly readers: readonly number[];
    readonly tokens: number;
    /** That run the turns of so many callers, who ask for so many turns each. */
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

/** For a look at whether everything works. */
export const QUICK: Sizes = {
  rounds: 2,
  few: 100,
  many: 2000,
  operations: 100,
  sweep: { stale: 600, among: 1200 },
  history: { sessions: 4, short: 10, long: 150, pruning: 105, turns: 5 },
  lanes: { sessions: 20, turns: 5, idle: { sessions: 5, turns: 4 }, unfair: { hot: 50, others: 10 } },
  jobs: { 1: 20, 8: 10, 32: 5 },
  peers: { sessions: 4, turns: 3 },
  starts: 1,
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
