import { type SessionsAdapter } from 'nestjs-agent-sessions';

const PORTS = ['sessions', 'turns', 'events', 'checkpoints', 'conversations', 'state', 'leases'] as const;

/** Returns the store, and records each call as `port.method`, for example `sessions.fetchById`. */
export function recordingAdapter(adapter: SessionsAdapter, calls: string[]): SessionsAdapter {
  const ports = PORTS.map((port) => [port, recording(adapter[port], port, calls)]);
  return { ...recording(adapter, '', calls), ...Object.fromEntries(ports) } as SessionsAdapter;
}

function recording<T extends object>(target: T, name: string, calls: string[]): T {
  return new Proxy(target, {
    get(_, method) {
      const value: unknown = Reflect.get(target, method);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]): unknown => {
        calls.push(name === '' ? String(method) : `${name}.${String(method)}`);
        return Reflect.apply(value, target, args);
      };
    },
  });
}
