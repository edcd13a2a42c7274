import { type JsonObject } from '../common/json.js';
import { type Mutable } from '../common/mutable.js';
import { type NewCheckpoint } from '../ledger/checkpoint.js';
import { type NewMessage } from '../ledger/conversation.store.js';
import { type MessageDraft } from '../ledger/message.js';
import { type ClaimedTurn } from '../ledger/turn.store.js';
import { attemptNumber, type SettledTurnStatus, type Turn } from '../ledger/turn.js';
import { messageId, userMessage } from '../ledger/user-message.js';
import { type TurnOrchestration } from '../orchestration/turn-orchestration.js';
import { type Replacement } from './replacement.js';
import { intentsOf } from './orchestrator-signature.js';
import { type OrchestratorDefinition } from './orchestrator.js';
import { type TurnConversation } from './turn-conversation.js';
import { elapsed } from './turn-calls.js';
import { asJson, type EndedBy, type IterationReport, type TurnReport } from './turn-report.js';
import { toUsageReport, type UsageTally } from './usage-tally.js';

/** The values that the checkpoint of a settled turn is built from. */
export interface CheckpointSource {
  readonly definition: OrchestratorDefinition;
  readonly claimed: ClaimedTurn;
  readonly replacement: Replacement | undefined;
  readonly turnIndex: number;
  readonly conversation: TurnConversation;
  readonly orchestration: TurnOrchestration | null;
  readonly state: JsonObject;
  readonly lastRoute: readonly string[];
}

export function toCheckpoint(source: CheckpointSource): NewCheckpoint {
  const { definition, claimed, replacement, turnIndex, conversation, orchestration, state, lastRoute } = source;
  const { name, signature, version } = definition;
  const { turn, checkpoint } = claimed;
  const { log, undone, summarizedThrough, snapshots } = conversation;
  const documents = orchestration ? [orchestration.snapshot(), ...snapshots] : snapshots;
  const next: Mutable<NewCheckpoint> = {
    orchestrator: name,
    sessionId: turn.sessionId,
    turnIndex,
    state,
    lastRoute,
    signature,
    version,
    intents: intentsOf(definition),
    summarizedThrough,
    turnId: turn.id,
  };
  if (log !== '') next.log = log;
  const parent = replacement ? replacement.parent : checkpoint?.turnIndex;
  if (parent !== undefined) next.parent = parent;
  if (replacement) next.replaces = replacement.turnId;
  if (undone.length > 0) next.undone = undone;
  if (documents.length > 0) next.documents = documents;
  return next;
}

/** Returns the user's message and those that the turn adds. Leading system messages come before the user's message. */
export function toMessages(turn: Turn, messages: readonly MessageDraft[]): NewMessage[] {
  const own = messages.map((message, index) => ({ ...message, id: message.id ?? messageId(turn.id, index + 1) }));
  const lead = own.findIndex(({ role }) => role !== 'system');
  const leading = own.slice(0, lead === -1 ? own.length : lead);
  return [...leading, userMessage(turn), ...own.slice(leading.length)];
}

/** The values that the report of an attempt is built from. */
export interface ReportSource {
  readonly claimed: ClaimedTurn;
  readonly conversation: TurnConversation;
  readonly tally: UsageTally;
  readonly iterations: readonly IterationReport[];
  readonly migrated: readonly string[];
  /** The start of the attempt, by `performance.now()`. */
  readonly startedAt: number;
}

/** @param endedBy absent for an attempt that failed or was cancelled */
export function toReport(source: ReportSource, status: SettledTurnStatus, endedBy?: EndedBy): JsonObject {
  const { claimed, conversation, tally, iterations, migrated, startedAt } = source;
  // Report summaries only with a checkpoint, which records that they were reported. Otherwise the next turn reports
  // them.
  const spent = endedBy === undefined ? null : conversation.usage;
  const compaction = conversation.compaction(spent);
  const usage = tally.totalWith(spent);
  const report: Mutable<TurnReport> = {
    status,
    attempt: attemptNumber(claimed.turn),
    durationMs: elapsed(startedAt),
    iterations,
  };
  if (endedBy !== undefined) report.endedBy = endedBy;
  if (usage) report.usage = toUsageReport(usage);
  if (migrated.length > 0) report.migrated = migrated;
  if (compaction) report.compaction = compaction;
  return asJson(report);
}
