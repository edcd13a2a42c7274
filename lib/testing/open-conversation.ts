import { InvalidInputError } from '../common/sessions.error.js';
import { type OrchestratorRef, orchestratorName } from '../orchestration/orchestrator-ref.js';
import { type OrchestratorRegistry } from '../orchestrator/orchestrator.registry.js';
import { SessionNotFoundError } from '../ledger/session.errors.js';
import { type CreateSessionInput } from '../session/session.inputs.js';
import { unknownOrchestrator } from '../turn/turn-runner.js';
import { Conversation, type ConversationHost } from './conversation.js';

/** Options of a conversation: those of `SessionStore.create` for a new session, or the id of an existing one. */
export type ConversationOptions = (CreateSessionInput | { readonly sessionId: string }) & {
  /** The orchestrator's class, definition or name. Required if the application has several. */
  readonly orchestrator?: OrchestratorRef | string;
};

/** See `SessionsTestingModule.conversation`. */
export async function openConversation(
  host: ConversationHost & { readonly registry: OrchestratorRegistry },
  options: ConversationOptions,
): Promise<Conversation> {
  const { orchestrator, ...session } = { ...options };
  const name = chosen(orchestrator, host.registry.names());
  if (!('sessionId' in session)) return new Conversation(host, (await host.sessions.create(session)).id, name);
  const existing = await host.sessions.get(session.sessionId);
  if (!existing) throw new SessionNotFoundError(session.sessionId);
  return new Conversation(host, existing.id, name);
}

function chosen(orchestrator: OrchestratorRef | string | undefined, known: readonly string[]): string {
  if (orchestrator !== undefined) {
    const name = typeof orchestrator === 'string' ? orchestrator : orchestratorName(orchestrator);
    if (!known.includes(name)) throw unknownOrchestrator(name, known);
    return name;
  }
  const [only, ...others] = known;
  if (only !== undefined && others.length === 0) return only;
  throw new InvalidInputError(
    'options.orchestrator',
    only === undefined
      ? 'is missing, and the application has no orchestrator. Add one to `orchestrators`.'
      : `is missing, and the application has several orchestrators. Pass one of: ${known.join(', ')}.`,
  );
}
