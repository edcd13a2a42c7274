import 'reflect-metadata';
import {
  memoryAdapter,
  type SessionsAdapter,
  SessionsConfigurationError,
  SessionsModule,
  SessionStore,
} from 'nestjs-agent-sessions';
import { ATOMIC_METHODS } from '../../lib/ledger/session.store.js';
import { PORT_METHODS } from '../../lib/ledger/sessions.adapter.js';
import { startApplication } from '../support/application.js';
import { rejection } from '../support/running-application.js';

const RULE =
  'SessionsModule: The option adapter must be a SessionsAdapter, for example memoryAdapter() or typeormAdapter({ ... }).';

/** The compiler checks that these lists have all required methods. */
const METHODS = { ...PORT_METHODS, sessions: { ...PORT_METHODS.sessions, ...ATOMIC_METHODS } };
const rows = Object.entries(METHODS).flatMap(([port, methods]) =>
  Object.keys(methods).map((method) => ({ port, method, name: `${port}.${method}()` })),
);

describe('the methods of an adapter', () => {
  it.each(rows)('NST-03 refuses an adapter without $name at the start', async ({ port, method, name }) => {
    const adapter = memoryAdapter();
    const incomplete = Object.assign({ ...adapter }, { [port]: without(portOf(adapter, port), method) });

    await expectRefusal(incomplete, name);
  });

  it.each(Object.keys(METHODS))('NST-03 refuses an adapter without the port %s at the start', async (port) => {
    await expectRefusal(without(memoryAdapter(), port), port);
    await expectRefusal(Object.assign(memoryAdapter(), { [port]: null }), port);
  });

  it('NST-03 refuses an adapter without ping() at the start', async () => {
    await expectRefusal(without(memoryAdapter(), 'ping'), 'ping()');
  });

  it('NST-03 refuses a property that is not a method', async () => {
    const adapter = memoryAdapter();
    const turns = Object.assign(Object.create(adapter.turns) as SessionsAdapter['turns'], { claim: 'later' });

    await expectRefusal({ ...adapter, turns }, 'turns.claim()');
  });

  it('NST-03 names the ports in the message, without the fields of their instances', async () => {
    const { leases: _, ...others } = memoryAdapter();
    const sessions = Object.assign(Object.create(others.sessions) as typeof others.sessions, { password: 'hunter2' });
    const adapter = { ...others, sessions } as unknown as SessionsAdapter;

    const { message } = await rejection(start(adapter), SessionsConfigurationError);

    expect(message).toContain('Missing: leases. Add it. Received: { sessions: [');
    expect(message).not.toContain('hunter2');
  });

  it('NST-03 accepts a proxy of an adapter with getters, private fields and methods of its prototype', async () => {
    const app = await start(bound(new GuardedAdapter()));
    const sessions = app.get(SessionStore);
    const { id } = await sessions.create({ userId: 'ann' });

    expect(await sessions.get(id)).toMatchObject({ userId: 'ann' });
    await app.close();
  });
});

/** An adapter without own methods. */
class GuardedAdapter implements SessionsAdapter {
  readonly shared = false;
  readonly #store = memoryAdapter();
  readonly #sessions = bound(this.#store.sessions);

  get sessions(): SessionsAdapter['sessions'] {
    return this.#sessions;
  }

  get turns(): SessionsAdapter['turns'] {
    return this.#store.turns;
  }

  get changes(): SessionsAdapter['changes'] {
    return this.#store.changes;
  }

  get events(): SessionsAdapter['events'] {
    return this.#store.events;
  }

  get checkpoints(): SessionsAdapter['checkpoints'] {
    return this.#store.checkpoints;
  }

  get conversations(): SessionsAdapter['conversations'] {
    return this.#store.conversations;
  }

  get state(): SessionsAdapter['state'] {
    return this.#store.state;
  }

  get leases(): SessionsAdapter['leases'] {
    return this.#store.leases;
  }

  ping(): Promise<void> {
    return this.#store.ping();
  }
}

function start(adapter: SessionsAdapter): ReturnType<typeof startApplication> {
  return startApplication({ imports: [SessionsModule.forRoot({ adapter })] });
}

async function expectRefusal(adapter: SessionsAdapter, missing: string): Promise<void> {
  const starting = start(adapter);

  await expect(starting).rejects.toBeInstanceOf(SessionsConfigurationError);
  await expect(starting).rejects.toThrow(`${RULE} Missing: ${missing}. Add it. Received: `);
}

function portOf(adapter: SessionsAdapter, port: string): object {
  return adapter[port as keyof SessionsAdapter] as object;
}

/** Hides a member, which may be a method of a prototype. */
function without<T extends object>(target: T, member: string): T {
  return new Proxy(target, {
    get: (object, key) => (key === member ? undefined : (Reflect.get(object, key) as unknown)),
  });
}

/** Calls methods on the object itself, whose private fields a proxy does not have. */
function bound<T extends object>(target: T): T {
  return new Proxy(target, {
    get: (object, key) => {
      const value: unknown = Reflect.get(object, key);
      return typeof value === 'function' ? (value.bind(object) as unknown) : value;
    },
  });
}
