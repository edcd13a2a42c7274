import {
  type NewSession,
  type Session,
  type SessionChange,
  type SessionLifetime,
  type SurfacePolicy,
  type SurfaceRules,
} from '../../ledger/session.js';
import { type AtomicSessionStoreAdapter, type CreatedSession } from '../../ledger/session.store.js';
import { type SessionsAdapter } from '../../ledger/sessions.adapter.js';
import { ClientDriver } from './client-driver.js';
import { byName, type ShownSession } from './session-model.js';
import {
  type Creation,
  MAX_METADATA_BYTES,
  MAX_SURFACES,
  type Name,
  NAMES,
  type OneSessionsChange,
  type SessionOperation,
  WORKSPACES,
} from './session-operation.js';

/** More rows than any store has here. */
const ALL = 100_000;

/** The sessions of one user. */
export class SessionDriver extends ClientDriver<SessionOperation, SessionOperation> {
  private readonly begun = new Set<Name>();

  /** Plans a create instead if the session has never existed. */
  plan(action: SessionOperation): SessionOperation {
    if (!('name' in action)) return action;
    const { name } = action;
    const isFirst = !this.begun.has(name);
    this.begun.add(name);
    if (!isFirst || 'recentMs' in action || action.type === 'create') return action;
    return { type: 'create', name, surface: null, policy: 'move' };
  }

  protected async call(adapter: SessionsAdapter, operation: SessionOperation): Promise<unknown> {
    const sessions = adapter.sessions as AtomicSessionStoreAdapter;
    switch (operation.type) {
      case 'create':
        return this.created(await sessions.create(this.draft(operation), rules(operation.policy)));
      case 'createOrAdopt': {
        const { policy, recentMs } = operation;
        return this.created(await sessions.createOrAdopt(this.draft(operation), rules(policy), recentMs));
      }
      case 'delete':
        return sessions.delete(this.idOf(operation.name));
      case 'erase':
        await sessions.erase(this.idOf(operation.name));
        return null;
      case 'get': {
        const session = await sessions.fetchById(this.idOf(operation.name));
        return session && this.shown(session);
      }
      case 'find':
        return (await sessions.fetchMany({ ...this.query(operation), limit: ALL })).map((each) => this.shown(each));
      case 'count':
        return sessions.count(this.query(operation));
      case 'suspendStale':
        return this.own(await sessions.suspendStale(operation.ms, ALL));
      case 'expireStale': {
        const changes = await sessions.expireStale(limits(operation), ALL);
        return changes
          .filter(({ session }) => this.isOwn(session))
          .map((change) => ({ ...change, session: this.shown(change.session) }))
          .sort((a, b) => byName(a.session, b.session));
      }
      case 'purgeExpired': {
        const ids = await sessions.purgeExpired(operation.ms, ALL);
        return NAMES.filter((name) => ids.includes(this.idOf(name))).sort();
      }
      default: {
        const change = await this.change(sessions, operation);
        const moved = 'movedFrom' in change ? { movedFrom: this.own(change.movedFrom as readonly Session[]) } : {};
        return { ...change, session: this.shown(change.session), ...moved };
      }
    }
  }

  private change(sessions: AtomicSessionStoreAdapter, operation: OneSessionsChange): Promise<SessionChange> {
    const id = this.idOf(operation.name);
    switch (operation.type) {
      case 'touch':
        return sessions.touch(id, limits(operation));
      case 'attach':
        return sessions.attachSurface(id, operation.surface, {
          ...rules(operation.policy),
          onLimit: operation.onLimit,
        });
      case 'detach':
        return sessions.detachSurface(id, operation.surface);
      case 'merge':
        return sessions.mergeMetadata(id, operation.patch, MAX_METADATA_BYTES);
      case 'expire':
        return sessions.expire(id);
    }
  }

  private draft({ name, surface }: Creation): NewSession {
    const workspaceId = WORKSPACES[name];
    return {
      id: this.idOf(name),
      userId: this.id,
      ...(workspaceId === null ? {} : { workspaceId }),
      attachedSurfaces: surface === null ? [] : [surface],
      metadata: {},
    };
  }

  private query({ surface, state }: Extract<SessionOperation, { type: 'find' | 'count' }>): {
    userId: string;
    surfaceId?: string;
    state?: Session['state'];
  } {
    const filter = { ...(surface === null ? {} : { surfaceId: surface }), ...(state === null ? {} : { state }) };
    return { userId: this.id, ...filter };
  }

  private created(created: CreatedSession): unknown {
    return { ...created, session: this.shown(created.session), movedFrom: this.own(created.movedFrom) };
  }

  private idOf(name: Name): string {
    return `${this.id}.${name}`;
  }

  private isOwn({ userId }: Session): boolean {
    return userId === this.id;
  }

  private own(sessions: readonly Session[]): ShownSession[] {
    return sessions
      .filter((session) => this.isOwn(session))
      .map((session) => this.shown(session))
      .sort(byName);
  }

  /** Replaces ids by names. */
  private shown({ id, userId, workspaceId, stateChangedAt, version = 0, ...rest }: Session): ShownSession {
    return {
      ...rest,
      version,
      name: id.slice(userId.length + 1) as Name,
      workspaceId: workspaceId ?? null,
      createdAt: this.since(rest.createdAt),
      lastActivityAt: this.since(rest.lastActivityAt),
      stateChangedAt: stateChangedAt === undefined ? null : this.since(stateChangedAt),
    };
  }
}

/** Returns the limits that are set. */
function limits(given: { readonly [limit in keyof SessionLifetime]?: number | null }): SessionLifetime {
  const { ttlMs = null, idleMs = null, maxMs = null } = given;
  return {
    ...(ttlMs === null ? {} : { ttlMs }),
    ...(idleMs === null ? {} : { idleMs }),
    ...(maxMs === null ? {} : { maxMs }),
  };
}

function rules(policy: SurfacePolicy): SurfaceRules {
  return { policy, maxSurfaces: MAX_SURFACES };
}
