import { type SessionChange, type SessionState } from '../../ledger/session.js';
import {
  type Creation,
  MAX_METADATA_BYTES,
  MAX_SURFACES,
  type Name,
  type OneSessionsChange,
  type SessionOperation,
  WORKSPACES,
} from './session-operation.js';
import { TimedModel } from './timed-model.js';

/** A session as its clients see it. */
export interface ShownSession {
  readonly name: Name;
  readonly workspaceId: string | null;
  state: SessionState;
  readonly createdAt: number;
  lastActivityAt: number;
  stateChangedAt: number | null;
  attachedSurfaces: readonly string[];
  metadata: Readonly<Record<string, unknown>>;
  version: number;
}

/** The outcome of an operation that a client saw. A faulty store may return any other value. */
type Seen<T> = T | string | null;
type ShownChange = Omit<SessionChange, 'session'> & { readonly session: ShownSession };
type Operation<Type extends SessionOperation['type']> = Extract<SessionOperation, { readonly type: Type }>;

/** A plain model of the sessions of a user (spec/1-sessions). */
export class SessionModel extends TimedModel<SessionOperation> {
  sessions: ShownSession[] = [];
  erased: Name[] = [];

  apply(operation: SessionOperation, seen: unknown): unknown {
    switch (operation.type) {
      case 'create':
        return this.create(operation, seen as Seen<ShownChange>);
      case 'createOrAdopt':
        return this.createOrAdopt(operation, seen as Seen<ShownChange>);
      case 'delete':
        return this.remove(operation.name);
      case 'erase':
        this.remove(operation.name);
        this.erased.push(operation.name);
        return null;
      case 'get':
        return this.get(operation.name) ?? null;
      case 'find':
        return this.matching(operation).sort(byActivity);
      case 'count':
        return this.matching(operation).length;
      case 'suspendStale':
        return this.suspendStale(operation.ms, listIn<ShownSession>(seen));
      case 'expireStale':
        return this.expireStale(operation, listIn<ShownChange>(seen));
      case 'purgeExpired':
        return this.purgeExpired(operation.ms, listIn<Name>(seen));
      default:
        return this.change(operation, seen as Seen<ShownChange>);
    }
  }

  private create({ name, surface, policy }: Creation, seen: Seen<ShownChange>): unknown {
    const rivals = this.rivals(name, surface);
    const refused = oneOf(seen, {
      SESSION_CONFLICT: this.get(name) !== undefined || this.erased.includes(name),
      SURFACE_CONFLICT: policy === 'reject' && rivals.length > 0,
    });
    if (refused) return refused;
    const at = this.stamp(this.now, sessionIn(seen)?.createdAt);
    const session: ShownSession = {
      name,
      workspaceId: WORKSPACES[name],
      state: 'created',
      createdAt: at,
      lastActivityAt: at,
      stateChangedAt: null,
      attachedSurfaces: surface === null ? [] : [surface],
      metadata: {},
      version: 1,
    };
    this.sessions.push(session);
    return { session, created: true, movedFrom: policy === 'move' ? takeFrom(rivals, surface) : [] };
  }

  private createOrAdopt(operation: Operation<'createOrAdopt'>, seen: Seen<ShownChange>): unknown {
    const { name, surface, recentMs } = operation;
    const adopted = sessionIn(seen)?.name;
    const recent = this.neighbours(name)
      .filter(({ attachedSurfaces }) => (surface ? attachedSurfaces.includes(surface) : attachedSurfaces.length === 0))
      .filter((session) => !this.isLonger(recentMs, session.createdAt, session.name !== adopted));
    // The store may choose any of several candidates.
    const session = recent.find((each) => each.name === adopted) ?? recent[0];
    return recent.length > 0 ? { session, created: false, movedFrom: [] } : this.create(operation, seen);
  }

  /** Applies a change to one session. Its version counts every change. */
  private change(operation: OneSessionsChange, seen: Seen<ShownChange>): unknown {
    const session = this.get(operation.name);
    if (!session) return 'SESSION_NOT_FOUND';
    const { state } = session;
    const held = session.attachedSurfaces;
    if (operation.type === 'touch' && this.isPastTtl(session, operation.ttlMs, seen)) session.state = 'suspended';
    const before = JSON.stringify(session);
    const previousState = session.state;
    const rivals = operation.type === 'attach' ? this.rivals(session.name, operation.surface) : [];
    const refused = this.changed(session, operation, rivals, seen);
    if (refused) {
      session.state = state;
      return refused;
    }

    const changed = JSON.stringify(session) !== before;
    if (changed) session.version += 1;
    if (operation.type !== 'attach') return { session, previousState, changed };
    const movedFrom = changed && operation.policy === 'move' ? takeFrom(rivals, operation.surface) : [];
    const detached = held.filter((surface) => !session.attachedSurfaces.includes(surface));
    return { session, previousState, changed, movedFrom, detached };
  }

  private isPastTtl({ state, lastActivityAt }: ShownSession, ttlMs: number | null, seen: Seen<ShownChange>): boolean {
    const wasSeen = seen !== null && typeof seen === 'object' && seen.previousState === 'suspended';
    return state === 'active' && ttlMs !== null && this.isLonger(ttlMs, lastActivityAt, wasSeen);
  }

  /** @returns the error code of a rejected change */
  private changed(
    session: ShownSession,
    operation: OneSessionsChange,
    rivals: readonly ShownSession[],
    seen: Seen<ShownChange>,
  ): string | null {
    const isOver = session.state === 'expired';
    switch (operation.type) {
      case 'touch': {
        const { maxMs } = operation;
        if (isOver) return 'SESSION_STATE';
        if (maxMs !== null && this.isLonger(maxMs, session.createdAt, seen === 'SESSION_STATE')) return 'SESSION_STATE';
        if (session.state !== 'active') this.enter(session, 'active', sessionIn(seen));
        session.lastActivityAt = this.stamp(
          Math.max(session.lastActivityAt, this.now),
          sessionIn(seen)?.lastActivityAt,
        );
        return null;
      }
      case 'attach': {
        const { surface, policy, onLimit } = operation;
        const isRepeat = session.attachedSurfaces.includes(surface);
        const refused = oneOf(seen, {
          SESSION_STATE: isOver,
          SURFACE_LIMIT: !isRepeat && onLimit === 'reject' && session.attachedSurfaces.length >= MAX_SURFACES,
          SURFACE_CONFLICT: !isRepeat && policy === 'reject' && rivals.length > 0,
        });
        if (!refused && !isRepeat)
          session.attachedSurfaces = [...session.attachedSurfaces, surface].slice(-MAX_SURFACES);
        return refused;
      }
      case 'detach':
        session.attachedSurfaces = session.attachedSurfaces.filter((surface) => surface !== operation.surface);
        return null;
      case 'merge': {
        const merged = Object.entries({ ...session.metadata, ...operation.patch }).filter(
          ([, value]) => value !== null,
        );
        const metadata = Object.fromEntries(merged);
        if (JSON.stringify(metadata).length > MAX_METADATA_BYTES) return 'TOO_LARGE';
        session.metadata = metadata;
        return null;
      }
      case 'expire':
        if (!isOver) this.enter(session, 'expired', sessionIn(seen));
        return null;
    }
  }

  private suspendStale(idleMs: number, seen: readonly ShownSession[]): unknown {
    const isStale = (session: ShownSession): boolean =>
      session.state === 'active' && this.isLonger(idleMs, session.lastActivityAt, found(seen, session) !== undefined);
    const stale = this.sorted(isStale);
    for (const session of stale) this.sweep(session, 'suspended', found(seen, session));
    return stale;
  }

  private expireStale({ idleMs, maxMs }: Operation<'expireStale'>, seen: readonly ShownChange[]): unknown {
    const sessions = seen.map(({ session }) => session);
    const isStale = (session: ShownSession): boolean => {
      const isLonger = (ms: number | null, since: number): boolean =>
        ms !== null && this.isLonger(ms, since, found(sessions, session) !== undefined);
      const isIdle = session.state !== 'active' && isLonger(idleMs, session.lastActivityAt);
      return session.state !== 'expired' && (isIdle || isLonger(maxMs, session.createdAt));
    };
    return this.sorted(isStale).map((session) => {
      const previousState = session.state;
      this.sweep(session, 'expired', found(sessions, session));
      return { session, previousState, changed: true };
    });
  }

  private purgeExpired(olderThanMs: number, seen: readonly Name[]): unknown {
    const isOld = ({ name, state, stateChangedAt }: ShownSession): boolean =>
      state === 'expired' && this.isLonger(olderThanMs, stateChangedAt ?? 0, seen.includes(name));
    const names = this.sorted(isOld).map(({ name }) => name);
    for (const name of names) this.remove(name);
    return names;
  }

  private sweep(session: ShownSession, state: SessionState, seen: ShownSession | undefined): void {
    this.enter(session, state, seen);
    session.version += 1;
  }

  private enter(session: ShownSession, state: SessionState, seen: ShownSession | undefined): void {
    session.state = state;
    session.stateChangedAt = this.stamp(this.now, seen?.stateChangedAt);
  }

  private remove(name: Name): boolean {
    const before = this.sessions.length;
    this.sessions = this.sessions.filter((session) => session.name !== name);
    return this.sessions.length < before;
  }

  private get(name: Name): ShownSession | undefined {
    return this.sessions.find((session) => session.name === name);
  }

  /** Returns live sessions of the same workspace. */
  private neighbours(name: Name): ShownSession[] {
    return this.sorted((each) => each.state !== 'expired' && each.workspaceId === WORKSPACES[name]);
  }

  /** Returns the other holders of a surface. */
  private rivals(name: Name, surface: string | null): ShownSession[] {
    return this.neighbours(name).filter(
      (each) => each.name !== name && surface !== null && each.attachedSurfaces.includes(surface),
    );
  }

  private matching({ surface, state }: Operation<'find' | 'count'>): ShownSession[] {
    return this.sorted(
      (session) =>
        (surface === null || session.attachedSurfaces.includes(surface)) && (state === null || session.state === state),
    );
  }

  private sorted(belongs: (session: ShownSession) => boolean): ShownSession[] {
    return this.sessions.filter(belongs).sort(byName);
  }
}

export function byName(a: ShownSession, b: ShownSession): number {
  return a.name < b.name ? -1 : 1;
}

function byActivity(a: ShownSession, b: ShownSession): number {
  return b.lastActivityAt - a.lastActivityAt || b.createdAt - a.createdAt || byName(a, b);
}

function takeFrom(holders: readonly ShownSession[], surface: string | null): readonly ShownSession[] {
  for (const holder of holders) {
    holder.attachedSurfaces = holder.attachedSurfaces.filter((each) => each !== surface);
    holder.version += 1;
  }
  return holders;
}

/** Returns the code of a reason that applies; if several apply, the one that the store returned. */
function oneOf(seen: unknown, reasons: Readonly<Record<string, boolean>>): string | null {
  const codes = Object.keys(reasons).filter((code) => reasons[code]);
  return codes.find((code) => code === seen) ?? codes.at(0) ?? null;
}

function sessionIn(seen: Seen<ShownChange>): ShownSession | undefined {
  return typeof seen === 'string' ? undefined : seen?.session;
}

function listIn<T>(seen: unknown): readonly T[] {
  return Array.isArray(seen) ? (seen as T[]) : [];
}

function found(sessions: readonly ShownSession[], { name }: ShownSession): ShownSession | undefined {
  return sessions.find((session) => session.name === name);
}
