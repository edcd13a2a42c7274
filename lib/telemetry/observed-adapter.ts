import { errorType } from '../common/error-trace.js';
import { type SessionsAdapter } from '../ledger/sessions.adapter.js';
import { ERROR_TYPE, STORE_OPERATION, STORE_SYSTEM } from './attributes.js';
import { type Attributes, type Telemetry } from './telemetry.js';

type Operation = (...args: unknown[]) => Promise<unknown>;

/** The parts of an adapter whose methods are store operations. */
const PORTS = ['sessions', 'turns', 'events', 'checkpoints', 'conversations', 'state', 'leases'] as const;

/** Errors of writes that another writer preceded. */
const CONFLICTS: ReadonlySet<string> = new Set([
  'TURN_FENCED',
  'CHECKPOINT_CONFLICT',
  'STATE_RESET',
  'STATE_CONFLICT',
  'SESSION_CONFLICT',
]);

/** The operation that starts a worker's visit to a lane. It gets a span even if no other one is active. */
const FIRST_OF_A_VISIT = 'turns.claim';

/**
 * Returns an adapter whose operations are measured, and get a span if there is an active one (NST-21). Background
 * polling creates no spans. Without telemetry it returns the store unchanged.
 */
export function observedAdapter(adapter: SessionsAdapter, telemetry: Telemetry): SessionsAdapter {
  if (!telemetry.isOn) return adapter;
  const ports = new Map<PropertyKey, object>(
    PORTS.map((port) => [port, observedPort(adapter[port], port, adapter.system, telemetry)]),
  );
  return proxyOf(adapter, (key) => ports.get(key) ?? boundTo(adapter, key));
}

function observedPort<T extends object>(port: T, name: string, system: string | undefined, telemetry: Telemetry): T {
  const methods = new Map<PropertyKey, unknown>();
  return proxyOf(port, (key) => {
    const known = methods.get(key);
    if (known) return known;
    if (typeof Reflect.get(port, key) !== 'function') return Reflect.get(port, key);
    const method = observed(`${name}.${String(key)}`, system, telemetry, (args) => {
      // Look up the method on each call, because it may have been replaced.
      return Reflect.apply(Reflect.get(port, key) as Operation, port, args);
    });
    methods.set(key, method);
    return method;
  });
}

/** Returns a proxy of the same class. Its target has no properties, because a proxy may not replace read-only ones. */
function proxyOf<T extends object>(object: T, get: (key: PropertyKey) => unknown): T {
  return new Proxy(Object.create(object) as T, { get: (_, key) => get(key) });
}

function observed(
  operation: string,
  system: string | undefined,
  telemetry: Telemetry,
  call: (args: unknown[]) => Promise<unknown>,
): Operation {
  const attributes: Attributes = {
    [STORE_OPERATION]: operation,
    ...(system === undefined ? {} : { [STORE_SYSTEM]: system }),
  };
  const options = { name: operation, kind: 'client', attributes } as const;
  const measured = async (args: unknown[]): Promise<unknown> => {
    const startedAt = performance.now();
    let outcome = attributes;
    try {
      return await call(args);
    } catch (error) {
      const type = errorType(error);
      outcome = { ...attributes, [ERROR_TYPE]: type };
      if (CONFLICTS.has(type)) telemetry.count('agent_sessions.store.conflicts', 1, outcome);
      throw error;
    } finally {
      telemetry.record('agent_sessions.store.operation.duration', (performance.now() - startedAt) / 1000, outcome);
    }
  };
  const span = operation === FIRST_OF_A_VISIT ? 'span' : 'childSpan';
  return (...args) => (telemetry.isAnswered ? telemetry[span](options, () => measured(args)) : call(args));
}

function boundTo(target: object, key: PropertyKey): unknown {
  const value: unknown = Reflect.get(target, key);
  return typeof value === 'function' ? (...args: unknown[]) => Reflect.apply(value, target, args) as unknown : value;
}
