import { assertId } from '../common/ids.js';
import { isFields } from '../common/json.js';
import { unknownKeyRule } from '../common/known-keys.js';
import { InvalidInputError } from '../common/sessions.error.js';
import { type CompactionResult } from '../conversation/compaction-run.js';
import { type ConversationCompactor } from '../conversation/conversation-compactor.service.js';
import { SessionNotFoundError } from '../ledger/session.errors.js';
import { type SessionStore } from '../session/session-store.service.js';
import { type OrchestratorRegistry } from './orchestrator.registry.js';

type Args = Readonly<Record<string, unknown>>;

/** Implements `handle.command(name, { sessionId })`, which changes a session's conversation (BOT-01). */
export class ConversationCommands {
  constructor(
    private readonly compactor: ConversationCompactor,
    private readonly registry: OrchestratorRegistry,
    private readonly sessions: SessionStore,
  ) {}

  /** @throws InvalidInputError for an unknown name; what the command throws */
  async run(orchestrator: string, name: string, args: unknown): Promise<unknown> {
    if (name !== 'compact' && name !== 'restore') {
      throw new InvalidInputError('command', `must be compact or restore. Received: ${JSON.stringify(name)}.`);
    }
    this.registry.assertLog(name);
    if (!isFields(args)) throw new InvalidInputError('args', 'must be an object.');
    return name === 'compact' ? this.compact(orchestrator, args) : this.restore(args);
  }

  /** Compacts the conversation now, with the orchestrator's policy (BOT-45). */
  private async compact(orchestrator: string, args: Args): Promise<CompactionResult> {
    const policy = this.registry.get(orchestrator)?.compaction;
    if (!policy) {
      throw new InvalidInputError('command', `compact requires the compaction option of orchestrator ${orchestrator}.`);
    }
    return this.compactor.compact({ sessionId: await this.sessionOf(args), orchestrator, policy });
  }

  /** Reverts the latest compaction (BOT-43). */
  private async restore(args: Args): Promise<{ readonly through: number } | null> {
    return this.compactor.restore(await this.sessionOf(args));
  }

  private async sessionOf({ sessionId, ...unknown }: Args): Promise<string> {
    const [unknownKey] = Object.keys(unknown);
    if (unknownKey !== undefined) {
      throw new InvalidInputError(`args.${unknownKey}`, unknownKeyRule(unknownKey, ['sessionId']));
    }
    assertId(sessionId, 'args.sessionId');
    if (!(await this.sessions.get(sessionId))) throw new SessionNotFoundError(sessionId);
    return sessionId;
  }
}
