import { type StateSnapshot } from '../ledger/checkpoint.js';
import { assertId, mintId } from '../common/ids.js';
import { type JsonValue } from '../common/json.js';
import { StoreUnavailableError } from '../common/sessions.error.js';
import {
  type StateAccess,
  type StateAddress,
  type StateChange,
  type StateDocument,
  type StateName,
  type DocumentStore,
} from '../ledger/state.store.js';
import { CONTESTED, untilUncontested } from '../state/until-uncontested.js';
import { type OrchestrationRules } from './apply-entry.js';
import { PlanCatalog } from './plan-catalog.js';
import { foldOf, fromValue, isCreatedBy, readState, readStateWith, toValue } from './orchestration-document.js';
import {
  type OrchestrationEffect,
  type OrchestrationEntry,
  type StoredEntry,
  type TurnEntry,
  withOptions,
} from './orchestration-entry.js';
import { type OrchestrationEvents } from './orchestration-events.js';
import {
  NO_PROGRESS,
  type OrchestrationProgress,
  type OrchestrationState,
  type StoredProgress,
} from './orchestration-state.js';
import { type OrchestrationSettings } from './orchestration.settings.js';
import { type StepPlan } from './step-plan.js';

const STATE_KEY = 'state';

export interface OrchestrationParts {
  readonly store: DocumentStore;
  readonly settings: OrchestrationSettings;
  readonly catalog: PlanCatalog;
  readonly events: OrchestrationEvents;
}

/** @param plans the store of plans, which belong to no session. Default: the store of states */
export function orchestrationParts(
  store: DocumentStore,
  settings: OrchestrationSettings,
  events: OrchestrationEvents,
  plans: DocumentStore = store,
): OrchestrationParts {
  return { store, settings, events, catalog: new PlanCatalog(plans, settings) };
}

/** The result of an append. */
export interface Appended {
  readonly state: OrchestrationState;
  /**
   * The progress right before the append. Unlike the state, it includes the uses of a turn that has not settled. The
   * current progress if nothing was appended.
   */
  readonly before: StoredProgress;
  /** The progress right after the append, without later appends of others. */
  readonly after: StoredProgress;
  readonly effects: readonly OrchestrationEffect[];
  /** False if the state had another version than expected. */
  readonly applied: boolean;
}

/** Options of an append. */
interface AppendOptions {
  /** Creates the state if it does not exist. Default false. */
  readonly create?: boolean;
  /** Appends only to this version. Default: to every version. */
  readonly ifVersion?: number | undefined;
}

/** The stored states of one agent. */
export class AgentOrchestration {
  constructor(
    readonly agent: string,
    readonly plan: StepPlan | undefined,
    private readonly parts: OrchestrationParts,
  ) {}

  /** Reads the state, which counts as an access. One round trip. */
  async read(sessionId: string): Promise<OrchestrationState | null> {
    const document = await this.parts.store.get(this.address(sessionId), this.access);
    return document && readState(sessionId, document, await this.parts.catalog.rulesFor(document));
  }

  /**
   * Appends entries. One round trip; occasionally a second one, which shortens the document.
   * @returns `null` if there is no state and `create` is not set
   */
  async append(
    sessionId: string,
    entries: readonly OrchestrationEntry[],
    options: AppendOptions = {},
  ): Promise<Appended | null> {
    const id = mintId();
    const stored = await this.store(sessionId, id, entries, options);
    if (!stored) return null;
    const { document, rules, appended } = stored;
    if (isCreatedBy(document, id)) this.emit(sessionId, 'created');
    this.tell(sessionId, appended.effects);
    await this.fold(sessionId, document, rules);
    return appended;
  }

  /**
   * Stores entries of a running turn, and creates the state if it does not exist. The turn emits its events when it
   * settles. One round trip, see {@link append}.
   * @returns `null` if the state does not exist and `ifVersion` expects one
   */
  async appendOfTurn(
    sessionId: string,
    entry: TurnEntry,
    { id, ifVersion }: { readonly id: string; readonly ifVersion: number | undefined },
  ): Promise<Appended | null> {
    const stored = await this.store(sessionId, id, [entry], { create: true, ifVersion });
    if (stored) await this.fold(sessionId, stored.document, stored.rules);
    return stored && stored.appended;
  }

  /** @param id a repeated append with the same id has no effect */
  private async store(
    sessionId: string,
    id: string,
    entries: readonly StoredEntry[],
    { create = false, ifVersion }: AppendOptions,
  ): Promise<{
    readonly document: StateDocument;
    readonly rules: OrchestrationRules;
    readonly appended: Appended;
  } | null> {
    const { store, catalog } = this.parts;
    if (this.plan) await catalog.publish(this.plan);
    const document = await store.append(this.address(sessionId), {
      id,
      entries: entries.map((entry) => this.stamped(entry)) as unknown as readonly JsonValue[],
      ...(create ? { initial: toValue(NO_PROGRESS, id) } : {}),
      ...(ifVersion === undefined ? {} : { ifVersion }),
      ...this.access,
    });
    if (!document) return null;
    const rules = await catalog.rulesFor(document).catch((cause: unknown) => {
      // The entries are stored; only their effect could not be determined.
      throw new StoreUnavailableError(
        'The state was changed, but could not be read. Read it again before you repeat the call.',
        { cause, maybeApplied: true },
      );
    });
    const applied = document.batches.some((batch) => batch.id === id);
    return { document, rules, appended: { ...readStateWith(id, sessionId, document, rules), applied } };
  }

  /**
   * Appends entries that depend on the exact current state.
   * @param decide called again with the newer state if the state was changed in the meantime; `null` adds nothing
   * @throws StateConflictError if each of many tries conflicted
   */
  async appendTo(
    sessionId: string,
    known: OrchestrationState | null,
    decide: (
      state: OrchestrationState,
    ) => Promise<readonly OrchestrationEntry[] | null> | readonly OrchestrationEntry[] | null,
  ): Promise<OrchestrationState | null> {
    let state = known;
    return untilUncontested(sessionId, async () => {
      const entries = state && (await decide(state));
      if (!state || !entries) return state;
      const appended = await this.append(sessionId, entries, { ifVersion: state.version });
      state = appended && appended.state;
      return !appended || appended.applied ? state : CONTESTED;
    });
  }

  /** Replaces the state with the defaults. */
  async reset(sessionId: string): Promise<OrchestrationState> {
    const { store, catalog } = this.parts;
    const document = await store.set(this.address(sessionId), toValue(NO_PROGRESS), this.access);
    this.emit(sessionId, 'reset');
    return readState(sessionId, document!, catalog.rules);
  }

  async delete(sessionId: string): Promise<boolean> {
    const removed = await this.parts.store.delete(this.address(sessionId));
    if (removed) this.emit(sessionId, 'removed');
    return removed;
  }

  emit(sessionId: string, type: 'created' | 'reset' | 'removed'): void {
    this.parts.events.emit({ type, agent: this.agent, sessionId });
  }

  /** Returns the snapshot of this state in a checkpoint. */
  snapshotIn(documents: readonly StateSnapshot[] = []): JsonValue | undefined {
    const { namespace, scope, key } = this.name;
    const isMine = ({ name }: StateSnapshot): boolean =>
      name.namespace === namespace && name.scope === scope && name.key === key;
    return documents.find(isMine)?.value;
  }

  /** Returns the change that restores a snapshot in a session, except for tokens, which remain spent. */
  restored(value: JsonValue | undefined): StateChange {
    const { cumulativeTokenUsage: _, ...updates } = value === undefined ? NO_PROGRESS : fromValue(value);
    const unset = updates.activeStep === undefined ? ['activeStep'] : [];
    const entry = this.stamped({ type: 'merge', updates, unset });
    return this.changed([entry as unknown as JsonValue], NO_PROGRESS);
  }

  /** Returns the change that initializes a session from a snapshot. */
  copied(value: JsonValue): StateChange {
    return this.changed([], fromValue(value));
  }

  tell(sessionId: string, effects: readonly OrchestrationEffect[]): void {
    for (const effect of effects) this.parts.events.emit({ agent: this.agent, sessionId, ...effect });
  }

  /** Adds the options of this process that readers need to an entry. */
  stamped<Entry extends StoredEntry>(entry: Entry): Entry {
    return withOptions(entry, this.parts.settings.recentTools);
  }

  /** The name of the agent's document in every session. */
  get name(): StateName {
    return { namespace: this.parts.settings.namespace, scope: this.agent, key: STATE_KEY };
  }

  get events(): OrchestrationEvents {
    return this.parts.events;
  }

  get access(): StateAccess {
    const { ttlMs } = this.parts.settings;
    return ttlMs === undefined ? {} : { ttlMs };
  }

  get catalog(): PlanCatalog {
    return this.parts.catalog;
  }

  private changed(entries: readonly JsonValue[], initial: OrchestrationProgress): StateChange {
    return { name: this.name, append: { id: mintId(), entries, initial: toValue(initial), ...this.access } };
  }

  private async fold(sessionId: string, document: StateDocument, rules: OrchestrationRules): Promise<void> {
    const fold = foldOf(document, rules);
    if (!fold) return;
    const append = { id: mintId(), entries: [], fold, ...this.access };
    // The request itself is done; the next append folds again.
    await this.parts.store.append(this.address(sessionId), append).catch(() => undefined);
  }

  private address(sessionId: string): StateAddress {
    assertId(sessionId, 'sessionId');
    return { ...this.name, sessionId };
  }
}
