import { checkpointAt, turnsAfter } from '../ledger/checkpoint-at.js';
import { CheckpointNotFoundError } from '../ledger/checkpoint.errors.js';
import { type CheckpointStore } from '../ledger/checkpoint.store.js';
import { type Checkpoint } from '../ledger/checkpoint.js';
import { type ConversationHeads } from '../conversation/conversation-heads.js';
import { isOfLog, logOf, ofLog, undoneIn } from '../conversation/log-epoch.js';
import { type ConversationLog, type NewMessage } from '../ledger/conversation.store.js';
import { type ConversationMessage } from '../ledger/message.js';
import { withoutUndone } from '../conversation/undone-messages.js';
import { type OrchestrationAgents } from '../orchestration/orchestration-agents.js';
import { type StateChange } from '../ledger/state.store.js';
import { type ClaimedTurn, type TurnSettlement } from '../ledger/turn.store.js';
import { type TurnCommand } from '../ledger/turn.js';
import { SessionConflictError } from '../ledger/session.errors.js';
import { messageId } from '../ledger/user-message.js';
import { type OrchestratorDefinition } from './orchestrator.js';
import { type OrchestratorRegistry } from './orchestrator.registry.js';
import { type LoadState, type Rewind, restoredFields } from './rewind.js';

type ForkSource = Extract<TurnCommand, { type: 'fork' }>['from'];

/** Page size for reading the whole log. */
const PAGE = 500;

/** Runs turns that are commands (BOT-25). One settlement stores all their changes, as with any turn. */
export class TurnCommands {
  constructor(
    private readonly checkpoints: CheckpointStore,
    private readonly log: ConversationLog,
    private readonly heads: ConversationHeads,
    private readonly agents: OrchestrationAgents,
    private readonly registry: OrchestratorRegistry,
    private readonly rewind: Rewind,
  ) {}

  /** @param load checks and migrates the restored state, as at the start of any turn */
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
   * Continues from the state before the last turn. Writes a checkpoint that represents the earlier one, so that another
   * undo goes further back.
   * @throws NothingToUndoError, CheckpointNotFoundError, OrchestratorDriftError, StateModuleError
   */
  private async undo(
    definition: OrchestratorDefinition,
    claimed: ClaimedTurn,
    load: LoadState,
  ): Promise<TurnSettlement> {
    // The command may have been accepted before the application restarted without conversations.
    this.registry.assertLog('undo');
    const { checkpoint, changes } = await this.rewind.latest(definition, claimed, load);
    const { turnIndex, turnId } = claimed.checkpoint as Checkpoint & { readonly turnId: string };
    return {
      status: 'awaiting-input',
      reply: { text: null, data: { undone: turnId } },
      messages: [],
      checkpoint: { ...checkpoint, turnIndex: turnIndex + 1 },
      keepCheckpoints: definition.keepCheckpoints,
      stateChanges: changes,
    };
  }

  /**
   * Initializes an empty session with the messages, state and plan of another one, as they were after one of its turns.
   * @throws SessionConflictError (`SESSION_NOT_EMPTY`), CheckpointNotFoundError, OrchestratorDriftError
   */
  private async fork(
    definition: OrchestratorDefinition,
    claimed: ClaimedTurn,
    from: ForkSource,
    load: LoadState,
  ): Promise<TurnSettlement> {
    const { turn, checkpoint } = claimed;
    if (checkpoint ?? (await this.hasMessages(turn.sessionId))) {
      throw new SessionConflictError(turn.sessionId, 'SESSION_NOT_EMPTY');
    }
    const source = await this.sourceOf(definition.name, from);
    const messages = this.registry.logsConversations ? await this.conversationAt(source) : [];
    // Check again after the messages: they may be those of another session that got the id meanwhile.
    await this.sourceOf(definition.name, from);
    return {
      status: 'awaiting-input',
      reply: { text: null },
      messages: messages.map((message, index) => copyOf(message, messageId(turn.id, index))),
      checkpoint: {
        ...restoredFields(definition, turn.sessionId, source, await load(source)),
        turnIndex: 0,
        ...ofLog(logOf(claimed)),
        summarizedThrough: 0,
      },
      keepCheckpoints: definition.keepCheckpoints,
      stateChanges: this.copied(definition, source),
    };
  }

  /** @throws CheckpointNotFoundError also if the id now belongs to another session */
  private async sourceOf(orchestrator: string, { sessionId, turnIndex, savedAt }: ForkSource): Promise<Checkpoint> {
    const source = await checkpointAt(this.checkpoints, orchestrator, sessionId, turnIndex);
    if (source.savedAt !== savedAt) throw new CheckpointNotFoundError(orchestrator, sessionId, turnIndex);
    return source;
  }

  private async hasMessages(sessionId: string): Promise<boolean> {
    if (!this.registry.logsConversations) return false;
    return (await this.log.page(sessionId, { limit: 1 })).length > 0;
  }

  /**
   * Returns the messages up to the orchestrator's next turn, without undone ones. Empty if the log was cleared since.
   */
  private async conversationAt(checkpoint: Checkpoint): Promise<readonly ConversationMessage[]> {
    const { sessionId } = checkpoint;
    const log: ConversationMessage[] = [];
    for (let page: readonly ConversationMessage[]; ;) {
      page = await this.log.page(sessionId, { after: log.length, limit: PAGE });
      log.push(...page);
      if (page.length < PAGE) break;
    }
    const present = (await this.heads.read(sessionId)).head.log;
    if (!isOfLog(checkpoint, present)) return [];
    // Read the turns after the messages: if the messages of a turn exist, its checkpoint does too.
    const end = await this.endOf(checkpoint, log);
    return withoutUndone(log.slice(0, end), undoneIn(checkpoint, present));
  }

  /** Returns the index at which the messages of later turns begin. Turns without messages were unlogged. */
  private async endOf(checkpoint: Checkpoint, log: readonly ConversationMessage[]): Promise<number> {
    for await (const next of turnsAfter(this.checkpoints, checkpoint)) {
      const end = log.findIndex(({ turnId }) => turnId === next);
      if (end >= 0) return end;
    }
    return log.length;
  }

  private copied({ plan }: OrchestratorDefinition, { documents }: Checkpoint): readonly StateChange[] {
    if (!plan) return [];
    const states = this.agents.get(plan.agent);
    const value = states.snapshotIn(documents);
    return value === undefined ? [] : [states.copied(value)];
  }
}

function copyOf(message: ConversationMessage, id: string): NewMessage {
  const { position: _, createdAt: __, turnId: ___, orchestrator = null, ...said } = message;
  return { ...said, id, orchestrator };
}
