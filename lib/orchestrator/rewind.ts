import { checkpointAt } from '../ledger/checkpoint-at.js';
import { type CheckpointStore } from '../ledger/checkpoint.store.js';
import { type Checkpoint, type NewCheckpoint } from '../ledger/checkpoint.js';
import { mintId } from '../common/ids.js';
import { type JsonObject, type JsonValue } from '../common/json.js';
import { HEAD, type TakenBack } from '../conversation/conversation-head.js';
import { isOfLog, logOf, ofLog, undoneIn } from '../conversation/log-epoch.js';
import { type ConversationLog } from '../ledger/conversation.store.js';
import { type MessageSpan } from '../ledger/message.js';
import { stillReported } from '../conversation/spent-usage.js';
import { joined, messagesSince } from '../conversation/undone-messages.js';
import { type OrchestrationAgents } from '../orchestration/orchestration-agents.js';
import { type StateChange } from '../ledger/state.store.js';
import { type ClaimedTurn, type TurnLedger } from '../ledger/turn.store.js';
import { type Turn } from '../ledger/turn.js';
import { intentsOf } from './orchestrator-signature.js';
import { type OrchestratorDefinition } from './orchestrator.js';
import { NothingToUndoError } from './time-travel.errors.js';

/** Page size for finding a turn with messages. */
const PAGE = 50;

/** Checks and migrates a restored state, as at the start of any turn. */
export type LoadState = (checkpoint: Checkpoint | null) => Promise<JsonObject>;

/** A session without the last turns of an orchestrator. */
export interface Rewound {
  /** The checkpoint before these turns; `null` if they are all turns. */
  readonly before: Checkpoint | null;
  /** The fields of a checkpoint that represents `before`. */
  readonly checkpoint: Omit<NewCheckpoint, 'turnIndex'>;
  /** Restores the plan's progress, and stops the use of a summary that covers undone messages. */
  readonly changes: readonly StateChange[];
}

/** Computes what a session is like without an orchestrator's last turns (BOT-25, AIS-07). Stores nothing. */
export class Rewind {
  constructor(
    private readonly checkpoints: CheckpointStore,
    private readonly log: ConversationLog,
    private readonly turns: Pick<TurnLedger, 'get' | 'list'>,
    private readonly agents: OrchestrationAgents,
  ) {}

  /**
   * Leaves out the latest turn that is not undone.
   * @throws NothingToUndoError, CheckpointNotFoundError, OrchestratorDriftError
   */
  async latest(definition: OrchestratorDefinition, claimed: ClaimedTurn, load: LoadState): Promise<Rewound> {
    const { checkpoint: latest } = claimed;
    const { sessionId } = claimed.turn;
    if (!latest || latest.turnId === undefined) throw new NothingToUndoError(definition.name, sessionId);
    const before = await this.parentOf(latest);
    const spans = await messagesSince(this.log, sessionId, definition.name, latest.turnId);
    return this.rewound(definition, claimed, { before, spans, state: await load(before) });
  }

  /**
   * Leaves out a turn and all later ones.
   * @throws NothingToUndoError if the turn was deleted; CheckpointNotFoundError, OrchestratorDriftError
   */
  async from(
    turnId: string,
    definition: OrchestratorDefinition,
    claimed: ClaimedTurn,
    load: LoadState,
  ): Promise<Rewound> {
    const first = await this.turns.get(turnId);
    if (!first) throw new NothingToUndoError(definition.name, claimed.turn.sessionId);
    let before = claimed.checkpoint;
    while (before && !(await this.isBefore(before, first))) before = await this.parentOf(before);
    const spans = await this.messagesFrom(first);
    return this.rewound(definition, claimed, { before, spans, state: await load(before) });
  }

  private async parentOf({ orchestrator, sessionId, parent }: Checkpoint): Promise<Checkpoint | null> {
    return parent === undefined ? null : checkpointAt(this.checkpoints, orchestrator, sessionId, parent);
  }

  /** Returns whether a checkpoint or message is older than a turn. It is if its turn was purged, or if a fork began with it. */
  private async isBefore({ turnId }: Pick<Checkpoint, 'turnId'>, { position }: Turn): Promise<boolean> {
    const turn = turnId === undefined ? null : await this.turns.get(turnId);
    return turn === null || turn.position < position;
  }

  /** Returns the positions of the orchestrator's messages from a turn on. That turn itself may have none. */
  private async messagesFrom(first: Turn): Promise<readonly MessageSpan[]> {
    const { sessionId, orchestrator } = first;
    for (let after = first.position - 1; ;) {
      const page = await this.turns.list({ sessionId, after, limit: PAGE });
      for (const turn of page) {
        after = turn.position;
        // A failed turn and one that was superseded have no messages. A search for them would read the whole log.
        const hasNone = turn.settledAt === undefined || turn.status === 'failed' || turn.status === 'superseded';
        // The messages of a fork stay, as its state does.
        const isFork = turn.request.command?.type === 'fork';
        if (turn.orchestrator !== orchestrator || hasNone || isFork) continue;
        // A turn that was cancelled may have none, too.
        const spans = await messagesSince(this.log, sessionId, orchestrator, turn.id, (turnId) =>
          this.isBefore({ turnId }, turn),
        );
        if (spans.length > 0) return spans;
      }
      if (page.length < PAGE) return [];
    }
  }

  private rewound(
    definition: OrchestratorDefinition,
    claimed: ClaimedTurn,
    rest: { readonly before: Checkpoint | null; readonly spans: readonly MessageSpan[]; readonly state: JsonObject },
  ): Rewound {
    const { before, spans, state } = rest;
    const { checkpoint: latest, turn } = claimed;
    const log = logOf(claimed);
    return {
      before,
      checkpoint: {
        ...restoredFields(definition, turn.sessionId, before, state),
        ...(latest ? { documents: stillReported(before?.documents, latest) } : {}),
        ...ofLog(log),
        summarizedThrough: latest && isOfLog(latest, log) ? latest.summarizedThrough : 0,
        ...(before?.turnId === undefined ? {} : { turnId: before.turnId }),
        ...(before?.parent === undefined ? {} : { parent: before.parent }),
        undone: joined([...undoneIn(latest, log), ...spans]),
      },
      changes: [...this.restored(definition, before), ...spans.slice(0, 1).map(withoutSummary)],
    };
  }

  private restored({ plan }: OrchestratorDefinition, before: Checkpoint | null): readonly StateChange[] {
    if (!plan) return [];
    const states = this.agents.get(plan.agent);
    return [states.restored(states.snapshotIn(before?.documents))];
  }
}

/** Returns the fields of a checkpoint that represents an earlier one, or the state before the first. */
export function restoredFields(
  definition: OrchestratorDefinition,
  sessionId: string,
  before: Checkpoint | null,
  state: JsonObject,
): Omit<NewCheckpoint, 'turnIndex' | 'summarizedThrough'> {
  const { name, signature, version } = definition;
  return {
    orchestrator: name,
    sessionId,
    state,
    lastRoute: before ? before.lastRoute : [],
    signature,
    version,
    intents: intentsOf(definition),
    ...(before?.documents ? { documents: before.documents } : {}),
  };
}

/** Stops the use of a summary that covers undone messages. Has no effect if there is no summary. */
function withoutSummary({ from }: MessageSpan): StateChange {
  const entry: TakenBack = { from };
  return { name: HEAD, append: { id: mintId(), entries: [entry as unknown as JsonValue] } };
}
