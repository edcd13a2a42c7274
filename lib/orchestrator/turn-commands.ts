import { checkpointAt, turnsAfter } from '../ledger/checkpoint-at.js';
import { type CheckpointStore } from '../ledger/checkpoint.store.js';
import { type Checkpoint, type NewCheckpoint } from '../ledger/checkpoint.js';
import { mintId } from '../common/ids.js';
import { type JsonObject, type JsonValue } from '../common/json.js';
import { HEAD, type TakenBack } from '../conversation/conversation-head.js';
import { type ConversationHeads } from '../conversation/conversation-heads.js';
import { isOfLog, logOf, ofLog, undoneIn } from '../conversation/log-epoch.js';
import { type ConversationLog, type NewMessage } from '../ledger/conversation.store.js';
import { type Message, type MessageSpan } from '../ledger/message.js';
import { stillReported } from '../conversation/spent-usage.js';
import { joined, messagesSince, withoutUndone } from '../conversation/undone-messages.js';
import { type OrchestrationAgents } from '../orchestration/orchestration-agents.js';
import { type StateChange } from '../ledger/state.store.js';
import { type ClaimedTurn, type TurnSettlement } from '../ledger/turn.store.js';
import { type TurnCommand } from '../ledger/turn.js';
import { messageId } from '../ledger/user-message.js';
import { intentsOf } from './orchestrator-signature.js';
import { type OrchestratorDefinition } from './orchestrator.js';
import { type OrchestratorRegistry } from './orchestrator.registry.js';
import { NothingToUndoError, SessionNotEmptyError } from './time-travel.errors.js';

/** Messages of the log that are read at once where all of them are. */
const PAGE = 500;

type LoadState = (checkpoint: Checkpoint | null) => Promise<JsonObject>;

/** Carries out the turns that are commands (BOT-25). What they change is one settlement, as of any turn. */
export class TurnCommands {
  constructor(
    private readonly checkpoints: CheckpointStore,
    private readonly log: ConversationLog,
    private readonly heads: ConversationHeads,
    private readonly agents: OrchestrationAgents,
    private readonly registry: OrchestratorRegistry,
  ) {}

  /** @param load checks and migrates what is to stand again, as the state that any turn begins with */
  run(
    command: TurnCommand,
    definition: OrchestratorDefinition,
    claimed: ClaimedTurn,
    load: LoadState,
  ): Promise<TurnSettlement> {
    return command.type === 'undo'
      ? this.undo(definition, claimed, load)
      : this.fork(definition, claimed, command.from, load);
  }

  /**
   * Goes on from where the last turn began: with a checkpoint that stands for the one before, so that a further undo goes
   * further back.
   * @throws NothingToUndoError, CheckpointPrunedError, OrchestratorDriftError, StateModuleDisabledError
   */
  private async undo(
    definition: OrchestratorDefinition,
    claimed: ClaimedTurn,
    load: LoadState,
  ): Promise<TurnSettlement> {
    // Accepted before the application restarted without conversations.
    this.registry.assertLog('undo');
    const { name } = definition;
    const { turn, checkpoint: latest } = claimed;
    const { sessionId } = turn;
    const log = logOf(claimed);
    if (!latest || latest.turnId === undefined) throw new NothingToUndoError(name, sessionId);
    const before =
      latest.parent === undefined ? null : await checkpointAt(this.checkpoints, name, sessionId, latest.parent);
    const said = await messagesSince(this.log, sessionId, name, latest.turnId);
    return {
      status: 'awaiting-input',
      reply: { text: null, data: { undone: latest.turnId } },
      messages: [],
      checkpoint: {
        ...standing(definition, sessionId, before, await load(before)),
        documents: stillReported(before?.documents, latest),
        turnIndex: latest.turnIndex + 1,
        ...ofLog(log),
        summarizedThrough: isOfLog(latest, log) ? latest.summarizedThrough : 0,
        ...(before?.turnId === undefined ? {} : { turnId: before.turnId }),
        ...(before?.parent === undefined ? {} : { parent: before.parent }),
        undone: joined([...undoneIn(latest, log), ...said]),
      },
      keepCheckpoints: definition.keepCheckpoints,
      stateChanges: [...this.restored(definition, before), ...said.slice(0, 1).map(withoutSummary)],
    };
  }

  /**
   * Begins an empty session with all that another one has, as after one of its turns.
   * @throws SessionNotEmptyError, CheckpointNotFoundError, CheckpointPrunedError, OrchestratorDriftError
   */
  private async fork(
    definition: OrchestratorDefinition,
    claimed: ClaimedTurn,
    from: { readonly sessionId: string; readonly turnIndex: number },
    load: LoadState,
  ): Promise<TurnSettlement> {
    const { turn, checkpoint } = claimed;
    if (checkpoint ?? (await this.hasMessages(turn.sessionId))) throw new SessionNotEmptyError(turn.sessionId);
    const source = await checkpointAt(this.checkpoints, definition.name, from.sessionId, from.turnIndex);
    const messages = this.registry.logsConversations ? await this.conversationAt(source) : [];
    return {
      status: 'awaiting-input',
      reply: { text: null },
      messages: messages.map((message, index) => copyOf(message, messageId(turn.id, index))),
      checkpoint: {
        ...standing(definition, turn.sessionId, source, await load(source)),
        turnIndex: 0,
        ...ofLog(logOf(claimed)),
        summarizedThrough: 0,
      },
      keepCheckpoints: definition.keepCheckpoints,
      stateChanges: this.copied(definition, source),
    };
  }

  private async hasMessages(sessionId: string): Promise<boolean> {
    if (!this.registry.logsConversations) return false;
    return (await this.log.page(sessionId, { limit: 1 })).length > 0;
  }

  /** All that was said until the orchestrator's next turn, but for what was undone. Nothing when the log was cleared since. */
  private async conversationAt(checkpoint: Checkpoint): Promise<readonly Message[]> {
    const { sessionId } = checkpoint;
    const log: Message[] = [];
    for (let page: readonly Message[]; ;) {
      page = await this.log.page(sessionId, { after: log.length, limit: PAGE });
      log.push(...page);
      if (page.length < PAGE) break;
    }
    const present = (await this.heads.read(sessionId)).head.log;
    if (!isOfLog(checkpoint, present)) return [];
    // Only now: a turn whose messages were read is there for certain.
    const end = await this.endOf(checkpoint, log);
    return withoutUndone(log.slice(0, end), undoneIn(checkpoint, present));
  }

  /** Where the messages of later turns begin. Turns without messages were unlogged. */
  private async endOf(checkpoint: Checkpoint, log: readonly Message[]): Promise<number> {
    for await (const next of turnsAfter(this.checkpoints, checkpoint)) {
      const end = log.findIndex(({ turnId }) => turnId === next);
      if (end >= 0) return end;
    }
    return log.length;
  }

  private restored({ plan }: OrchestratorDefinition, before: Checkpoint | null): readonly StateChange[] {
    if (!plan) return [];
    const states = this.agents.get(plan.agent);
    return [states.restored(states.snapshotIn(before?.documents))];
  }

  private copied({ plan }: OrchestratorDefinition, { documents }: Checkpoint): readonly StateChange[] {
    if (!plan) return [];
    const states = this.agents.get(plan.agent);
    const value = states.snapshotIn(documents);
    return value === undefined ? [] : [states.copied(value)];
  }
}

/** What a checkpoint says that stands for another one, or for what was before the first. */
function standing(
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

/** A summary that stands for messages which were taken back is not read any more. Without effect where there is none. */
function withoutSummary({ from }: MessageSpan): StateChange {
  const entry: TakenBack = { from };
  return { name: HEAD, append: { id: mintId(), entries: [entry as unknown as JsonValue] } };
}

function copyOf(message: Message, id: string): NewMessage {
  const { position: _, createdAt: __, turnId: ___, orchestrator = null, ...said } = message;
  return { ...said, id, orchestrator };
}
