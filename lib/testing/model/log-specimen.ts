import { type ConversationMessage } from '../../ledger/message.js';
import { type NewMessage } from '../../ledger/conversation.store.js';
import { type AtomicSessionStoreAdapter } from '../../ledger/session.store.js';
import { type SessionsAdapter } from '../../ledger/sessions.adapter.js';
import { ClientDriver } from './client-driver.js';
import { action, type Specimen } from './specimen.js';
import { TimedModel } from './timed-model.js';

const ROLES = ['system', 'user', 'assistant'] as const;
/** More rows than any test creates. */
const ALL = 1000;

type LogRead =
  | { readonly type: 'window'; readonly limit: number }
  | { readonly type: 'page'; readonly after: number; readonly limit: number };

type LogAction =
  | { readonly type: 'append'; readonly roles: readonly (typeof ROLES)[number][] }
  | { readonly type: 'deleteSession' | 'eraseSession' }
  | LogRead;

type LogOperation =
  | { readonly type: 'append'; readonly messages: readonly NewMessage[] }
  | { readonly type: 'deleteSession' | 'eraseSession' }
  | LogRead;

type Shown = Omit<ConversationMessage, 'createdAt'> & { readonly createdAt: number };

/** The messages of a session (ConversationLog). */
export const LOG: Specimen<LogAction, LogOperation> = {
  actions(fc) {
    const roles = fc.array(fc.constantFrom(...ROLES), { minLength: 1, maxLength: 3 });
    const [after, limit] = [fc.nat(12), fc.nat(6)];
    return fc.oneof(
      { weight: 12, arbitrary: action(fc, 'append', { roles }) },
      { weight: 8, arbitrary: action(fc, 'window', { limit }) },
      { weight: 8, arbitrary: action(fc, 'page', { after, limit }) },
      { weight: 1, arbitrary: fc.record({ type: fc.constantFrom('deleteSession', 'deleteSession', 'eraseSession') }) },
    );
  },
  reads: [
    { type: 'page', after: 0, limit: ALL },
    { type: 'window', limit: 2 },
  ],
  model: (durations) => new LogModel(durations),
  open: (context) => LogDriver.open(context),
};

class LogModel extends TimedModel<LogOperation> {
  log: Shown[] = [];
  erased = false;

  apply(operation: LogOperation, seen: unknown): unknown {
    switch (operation.type) {
      case 'append':
        return this.append(operation.messages, seen as readonly Shown[]);
      case 'window':
        return this.window(operation.limit);
      case 'page':
        return this.log.slice(operation.after, operation.after + operation.limit);
      case 'deleteSession':
      case 'eraseSession':
        this.log = [];
        this.erased ||= operation.type === 'eraseSession';
        return null;
    }
  }

  private append(messages: readonly NewMessage[], seen: readonly Partial<Shown>[]): unknown {
    if (this.erased) return 'SESSION_NOT_FOUND';
    const added = messages.map(({ orchestrator: _, ...message }, index) => ({
      ...message,
      position: this.log.length + index + 1,
      createdAt: this.stamp(this.now, seen[index]?.createdAt),
    }));
    this.log.push(...added);
    return added;
  }

  private window(limit: number): Shown[] {
    if (limit === 0) return [];
    const recent = this.log.slice(-limit);
    const [first] = this.log;
    return first?.role === 'system' && !recent.includes(first) ? [first, ...recent] : recent;
  }
}

class LogDriver extends ClientDriver<LogAction, LogOperation> {
  plan(action: LogAction): LogOperation {
    if (action.type !== 'append') return action;
    const messages = action.roles.map((role) => ({ id: this.mint('message'), role, content: this.mint('content') }));
    return { type: 'append', messages };
  }

  protected async call({ conversations, sessions }: SessionsAdapter, operation: LogOperation): Promise<unknown> {
    switch (operation.type) {
      case 'append':
        return this.shown(await conversations.append(this.id, operation.messages));
      case 'window':
        return this.shown(await conversations.window(this.id, operation.limit));
      case 'page':
        return this.shown(await conversations.page(this.id, operation));
      case 'deleteSession':
        await sessions.delete(this.id);
        return null;
      case 'eraseSession':
        await (sessions as AtomicSessionStoreAdapter).erase(this.id);
        return null;
    }
  }

  private shown(messages: readonly ConversationMessage[]): Shown[] {
    return messages.map((message) => ({ ...message, createdAt: this.since(message.createdAt) }));
  }
}
