import { type LoggerService } from '@nestjs/common';
import {
  defineOrchestrator,
  type IntentResult,
  OrchestrationEvents,
  type OrchestrationEvent,
  type OrchestrationState,
  OrchestrationStateManager,
  type OrchestratorConfig,
  type SessionsAdapter,
  StoreUnavailableError,
  type TurnContext,
  type TurnResult,
} from 'nestjs-agent-sessions';
import { type StateDocument } from 'nestjs-agent-sessions/adapter';
import { type Application, type ApplicationOptions, startApplication } from '../support/running-application.js';

/** The work of a turn, passed with its message. */
export type Work = (
  turn: TurnContext,
) => Promise<IntentResult<Record<string, unknown>>> | IntentResult<Record<string, unknown>>;

export type Plan = Pick<OrchestratorConfig, 'steps' | 'onViolation' | 'tokenBudget' | 'iterate' | 'maxIterations'>;

/** Retries follow immediately. */
const IMPATIENT = { retry: { attempts: 3, backoff: { delayMs: 0 } } };

/** An application with an agent `desk` that has a plan. */
export interface Desk {
  readonly app: Application;
  readonly manager: OrchestrationStateManager;
  /** All events emitted so far. */
  readonly events: readonly OrchestrationEvent[];
  readonly session: () => Promise<string>;
  readonly say: (sessionId: string, work: Work, text?: string) => Promise<TurnResult>;
  readonly state: (sessionId: string) => Promise<OrchestrationState | null>;
  /** The stored document. Reading it does not count as access. */
  readonly document: (sessionId: string, agent?: string) => Promise<StateDocument | null>;
}

/** Runs the work that the message carries. */
export function deskOf(plan: Plan, name = 'desk'): ReturnType<typeof defineOrchestrator> {
  return defineOrchestrator({ ...plan, name, intents: { answer: (turn) => (turn.context.work as Work)(turn) } });
}

export async function startDesk(
  adapter: SessionsAdapter,
  plan: Plan,
  { turns, orchestrators = [], ...options }: ApplicationOptions = {},
): Promise<Desk> {
  const app = await startApplication({
    adapter,
    ...options,
    orchestrators: [deskOf(plan), ...orchestrators],
    turns: { ...IMPATIENT, ...turns },
  });
  const manager = app.app.get(OrchestrationStateManager, { strict: false });
  const events: OrchestrationEvent[] = [];
  app.app.get(OrchestrationEvents, { strict: false }).stream.subscribe((event) => events.push(event));
  return {
    app,
    manager,
    events,
    session: app.session,
    say: (sessionId, work, text = 'hi') => app.turns.execute('desk', text, { sessionId, context: { work } }),
    state: (sessionId) => manager.of('desk').getState(sessionId),
    document: (sessionId, agent = 'desk') =>
      app.adapter.state.get({ namespace: 'orchestration-state', scope: agent, sessionId, key: 'state' }),
  };
}

/** Uses tools one after another, each once: the call's id is the tool and its place. */
export async function useAll(turn: TurnContext, ...tools: string[]): Promise<void> {
  for (const [at, tool] of tools.entries()) await turn.tools.use(tool, `${turn.id} ${at} ${tool}`, () => `did ${tool}`);
}

export function toolsOf(state: { readonly toolHistory: readonly { readonly tool: string }[] } | null): string[] {
  return state ? state.toolHistory.map(({ tool }) => tool) : [];
}

/** The store of a worker that stalls once it has begun a turn: the lease lapses. */
export function stallingWorker(adapter: SessionsAdapter, hasBegun: () => boolean): SessionsAdapter {
  const claim: SessionsAdapter['turns']['claim'] = (...args) =>
    hasBegun() ? Promise.resolve(null) : adapter.turns.claim(...args);
  const renew = (): Promise<never> => Promise.reject(new StoreUnavailableError('out of reach'));
  return overlay(adapter, { turns: overlay(adapter.turns, { claim, renew }) });
}

/** A store whose appends for uses of running turns are applied when the given function calls `store`. */
export function delayingUses(
  adapter: SessionsAdapter,
  whenSent: (store: () => Promise<unknown>) => Promise<unknown>,
): SessionsAdapter {
  const append: SessionsAdapter['state']['append'] = async (address, given) => {
    const isUse = given.entries.some((entry) => (entry as { readonly mode?: string }).mode === 'add');
    const store = (): ReturnType<typeof append> => adapter.state.append(address, given);
    if (!isUse) return store();
    let result: ReturnType<typeof append> | undefined;
    await whenSent(() => (result = store()));
    return result!;
  };
  return overlay(adapter, { state: overlay(adapter.state, { append }) });
}

function overlay<T extends object>(target: T, over: Partial<T>): T {
  return new Proxy(target, {
    get: (_, key) => {
      if (Object.hasOwn(over, key)) return over[key as keyof T];
      const value: unknown = Reflect.get(target, key);
      return typeof value === 'function' ? (value as () => unknown).bind(target) : value;
    },
  });
}

/** A logger that keeps warnings. */
export function keepWarnings(): LoggerService & { readonly warnings: string[] } {
  const warnings: string[] = [];
  return { warnings, log: () => {}, error: () => {}, warn: (message: unknown) => warnings.push(String(message)) };
}
