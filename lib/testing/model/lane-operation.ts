import { LANE_MODES, type LaneMode } from '../../ledger/lane.js';
import { type CancelMode, WHEN_BUSY, type WhenBusy } from '../../ledger/turn.js';
import { type TurnHold } from '../../ledger/turn.store.js';
import { type Durations, type FastCheck } from './specimen.js';
import type fc from 'fast-check';

export type ModelledSettle = 'awaiting-input' | 'failed' | 'cancelled';

/** An operation on the lane of one session. */
export type LaneOperation =
  | {
      readonly type: 'accept';
      readonly turnId: string;
      readonly whenBusy: WhenBusy;
      readonly claim: LaneClaim | null;
    }
  | ({ readonly type: 'claim' } & LaneClaim)
  | { readonly type: 'renew'; readonly hold: TurnHold; readonly leaseMs: number }
  | {
      readonly type: 'settle';
      readonly hold: TurnHold;
      readonly status: ModelledSettle;
      /** The index of the checkpoint, which only successful turns write. */
      readonly turnIndex: number;
      readonly next: LaneClaim | null;
    }
  | { readonly type: 'retry' | 'release'; readonly hold: TurnHold; readonly delayMs: number }
  | { readonly type: 'wait'; readonly hold: TurnHold; readonly signal: string; readonly timeoutMs: number | null }
  | { readonly type: 'saveStep'; readonly hold: TurnHold; readonly name: string; readonly value: string }
  | { readonly type: 'signal'; readonly turnId: string; readonly signal: string; readonly payload: string }
  | { readonly type: 'cancel'; readonly turnId: string; readonly mode: CancelMode }
  | { readonly type: 'control'; readonly mode: LaneMode }
  | { readonly type: 'clear' }
  | { readonly type: 'create' | 'expire' | 'revoke' | 'delete' | 'erase' }
  | { readonly type: LaneRead };

export type LaneRead = 'session' | 'lane' | 'turns' | 'messages' | 'checkpoints';

export interface LaneClaim {
  readonly holder: string;
  readonly leaseMs: number;
  /** True if the claim accepts a turn that was lost twice or more. */
  readonly suspects?: boolean;
}

/**
 * A random action. `which` counts turns and holds from the latest on, so most actions use the current state and some
 * come from a client that lost its turn long ago.
 */
export type LaneAction =
  | {
      readonly type: 'accept';
      readonly whenBusy: WhenBusy;
      readonly again: boolean;
      /** The lease of the claim in the accept; `null` for an accept without a claim. */
      readonly leaseMs: number | null;
    }
  | { readonly type: 'claim'; readonly leaseMs: number; readonly again: boolean; readonly suspects: boolean }
  | { readonly type: 'renew'; readonly which: number; readonly leaseMs: number }
  | {
      readonly type: 'settle';
      readonly which: number;
      readonly status: ModelledSettle;
      /** The error of the checkpoint index. */
      readonly off: number;
      readonly handOver: number | null;
    }
  | { readonly type: 'retry' | 'release'; readonly which: number; readonly delayMs: number }
  | { readonly type: 'wait'; readonly which: number; readonly signal: string; readonly timeoutMs: number | null }
  | { readonly type: 'saveStep'; readonly which: number; readonly name: string }
  | { readonly type: 'signal'; readonly which: number; readonly signal: string }
  | { readonly type: 'cancel'; readonly which: number; readonly mode: CancelMode }
  | { readonly type: 'control'; readonly mode: LaneMode }
  | { readonly type: 'clear' }
  | { readonly type: 'create' | 'expire' | 'revoke' | 'delete' | 'erase' }
  | { readonly type: LaneRead };

const SIGNALS = ['approval', 'payment'];
const STEPS = ['look up', 'pay'];
const CANCEL_MODES: readonly CancelMode[] = ['cancel', 'interrupt', 'rollback'];

export function laneActions(fc: FastCheck, { given }: Durations): fc.Arbitrary<LaneAction> {
  const duration = fc.constantFrom(...given);
  const longest = fc.constant(Math.max(...given));
  const leaseMs = fc.oneof(longest, duration);
  const turn = fc.nat(5);
  const hold = fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.nat(5) });
  const seldom = fc.nat(9).map((n) => n === 0);
  const signal = fc.constantFrom(...SIGNALS);
  const type = <const Type extends string>(type: Type): { type: fc.Arbitrary<Type> } => ({ type: fc.constant(type) });
  // Opens the lane more often, so that most actions find a lane that is not held.
  const mode = fc.oneof({ weight: 2, arbitrary: fc.constant<LaneMode>('open') }, fc.constantFrom(...LANE_MODES));
  const whenBusy = fc.oneof(fc.constant<WhenBusy>('enqueue'), fc.constantFrom(...WHEN_BUSY));
  const settle = {
    ...type('settle'),
    which: hold,
    status: fc.constantFrom<ModelledSettle>('awaiting-input', 'failed', 'cancelled'),
    off: fc.oneof({ weight: 5, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.constantFrom(-1, 1) }),
    handOver: fc.option(leaseMs),
  };
  return fc.oneof(
    { weight: 8, arbitrary: fc.record({ ...type('accept'), whenBusy, again: seldom, leaseMs: fc.option(leaseMs) }) },
    { weight: 8, arbitrary: fc.record({ ...type('claim'), leaseMs, again: seldom, suspects: fc.boolean() }) },
    { weight: 8, arbitrary: fc.record(settle) },
    { weight: 2, arbitrary: fc.record({ ...type('renew'), which: hold, leaseMs }) },
    { weight: 2, arbitrary: fc.record({ ...type('retry'), which: hold, delayMs: duration }) },
    { weight: 2, arbitrary: fc.record({ ...type('release'), which: hold, delayMs: duration }) },
    { weight: 3, arbitrary: fc.record({ ...type('wait'), which: hold, signal, timeoutMs: fc.option(duration) }) },
    { weight: 2, arbitrary: fc.record({ ...type('saveStep'), which: hold, name: fc.constantFrom(...STEPS) }) },
    { weight: 4, arbitrary: fc.record({ ...type('signal'), which: turn, signal }) },
    { weight: 3, arbitrary: fc.record({ ...type('cancel'), which: turn, mode: fc.constantFrom(...CANCEL_MODES) }) },
    { weight: 2, arbitrary: fc.record({ ...type('control'), mode }) },
    { weight: 1, arbitrary: fc.record(type('clear')) },
    {
      weight: 2,
      arbitrary: fc.record({ type: fc.constantFrom('session', 'lane', 'turns', 'messages', 'checkpoints') }),
    },
    {
      weight: 1,
      arbitrary: fc.record({ type: fc.constantFrom('create', 'create', 'expire', 'revoke', 'delete', 'erase') }),
    },
  );
}
