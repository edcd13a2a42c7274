import { assertId } from '../common/ids.js';
import { InvalidInputError } from '../common/sessions.error.js';
import { type ConversationCompactor } from '../conversation/conversation-compactor.service.js';
import { SessionNotFoundError } from '../session/session.errors.js';
import { type SessionStore } from '../session/session-store.service.js';
import { type OrchestratorCommands } from './orchestrator-commands.js';
import { type OrchestratorRegistry } from './orchestrator.registry.js';

/**
 * `handle.command('compact', { sessionId })` compacts the session's conversation now, by the orchestrator's policy, and
 * `handle.command('restore', { sessionId })` takes the latest compaction back (BOT-45, BOT-43).
 */
export function registerConversationCommands(
  commands: OrchestratorCommands,
  compactor: ConversationCompactor,
  registry: OrchestratorRegistry,
  sessions: SessionStore,
): void {
  const sessionOf = async ({ sessionId, ...unknown }: Readonly<Record<string, unknown>>): Promise<string> => {
    const [stranger] = Object.keys(unknown);
    if (stranger !== undefined) throw new InvalidInputError(`args.${stranger}`, 'is not a known key.');
    assertId(sessionId, 'args.sessionId');
    if (!(await sessions.get(sessionId))) throw new SessionNotFoundError(sessionId);
    return sessionId;
  };
  commands.register('compact', async (orchestrator, args) => {
    const policy = registry.get(orchestrator)?.compaction;
    if (!policy) {
      throw new InvalidInputError('command', `compact needs a compaction policy, which ${orchestrator} does not have.`);
    }
    return compactor.compact({ sessionId: await sessionOf(args), orchestrator, policy });
  });
  commands.register('restore', async (_, args) => compactor.restore(await sessionOf(args)));
}
