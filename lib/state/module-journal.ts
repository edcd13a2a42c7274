import { inGroups } from '../common/batches.js';
import {
  applyFlowChange,
  archiveChanges,
  type FlowChange,
  flowName,
  flowStateChange,
  FOLD_FLOW_AT,
  type StoredCheckpoint,
} from './flow-change.js';
import { type ApplyEntry, FOLD_AT, foldedBy, foldOf, valueOf } from './module-document.js';
import {
  type StateChange,
  type StateDocument,
  type StateFold,
  type StateName,
  type StateStore,
} from '../ledger/state.store.js';
import { applyTaskChange, type StoredTask, type TaskChange, taskName, taskStateChanges } from './task-change.js';
import {
  applyToolChange,
  combineChanges,
  misfitIn,
  type StoredToolEntry,
  type ToolChange,
  toolEntryName,
  toolStateChange,
} from './tool-entry.js';

/** The number of documents to read at once. */
const READ_AT_ONCE = 20;

/** A change of module state by a turn. JSON, so that it can be stored with the turn's other results. */
export type ModuleWrite =
  | { readonly module: 'tools'; readonly tool: string; readonly key: string; readonly change: ToolChange }
  | { readonly module: 'task'; readonly id: string; readonly change: TaskChange }
  | { readonly module: 'flow'; readonly flow: string; readonly change: FlowChange };

/**
 * The reads and writes of module state by one attempt of a turn. The attempt sees its writes immediately; the turn's
 * settlement stores all of them or none. Each document is read once.
 */
export class ModuleJournal {
  private readonly writes: ModuleWrite[] = [];
  private readonly documents = new Map<string, Promise<StateDocument | null>>();
  private closed = false;

  constructor(
    private readonly store: Pick<StateStore, 'get'>,
    private readonly sessionId: string,
  ) {}

  add(write: ModuleWrite): void {
    this.writes.push(write);
  }

  get isEmpty(): boolean {
    return this.writes.length === 0;
  }

  /** True once the changes for the settlement are read. A later write would be lost. */
  get isClosed(): boolean {
    return this.closed;
  }

  close(): void {
    this.closed = true;
  }

  /** Returns the current position in the list of writes. */
  mark(): number {
    return this.writes.length;
  }

  since(mark: number): readonly ModuleWrite[] {
    return this.writes.slice(mark);
  }

  /** Repeats the writes of an earlier attempt whose code does not run again. */
  replay(writes: readonly ModuleWrite[]): void {
    this.writes.push(...writes);
  }

  async tool(tool: string, key: string): Promise<StoredToolEntry | null> {
    const document = await this.read(toolEntryName(tool, key));
    return valueAfter<StoredToolEntry, ToolChange>(document, this.toolChanges(tool, key), applyToolChange);
  }

  async task(id: string): Promise<StoredTask | null> {
    const document = await this.read(taskName(id));
    return valueAfter(document, this.taskChanges(id), applyTaskChange);
  }

  /** Writes the result of `change` for the current task. No other write of the attempt happens in between. */
  async changeTask(id: string, change: (task: StoredTask | null) => TaskChange): Promise<void> {
    const document = await this.read(taskName(id));
    const task = valueAfter(document, this.taskChanges(id), applyTaskChange);
    this.writes.push({ module: 'task', id, change: change(task) });
  }

  async flow(flow: string): Promise<StoredCheckpoint | null> {
    const document = await this.read(flowName(flow));
    return valueAfter(document, this.flowChanges(flow), applyFlowChange);
  }

  /**
   * Returns all changes for the settlement. Also reads documents that were only written, so that they can be folded.
   * @throws TooLargeError, InvalidInputError for a change of a tool's entry that does not fit the stored value
   */
  async changes(): Promise<StateChange[]> {
    const firsts = new Map<string, ModuleWrite>();
    for (const write of this.writes) {
      const place = JSON.stringify(nameOf(write));
      if (!firsts.has(place)) firsts.set(place, write);
    }
    return (await inGroups([...firsts.values()], READ_AT_ONCE, (write) => this.changesOf(write))).flat();
  }

  /** Returns all changes of the document of a write. */
  private async changesOf(write: ModuleWrite): Promise<readonly StateChange[]> {
    const document = await this.read(nameOf(write));
    switch (write.module) {
      case 'tools': {
        const { tool, key } = write;
        const changes = this.toolChanges(tool, key);
        await this.assertFit(write, document, changes);
        return [folded(toolStateChange(tool, key, changes), document, applyToolChange)];
      }
      case 'task': {
        const known = valueAfter<StoredTask, TaskChange>(document, [], applyTaskChange);
        const [change, ...marks] = taskStateChanges(write.id, this.taskChanges(write.id), known);
        return [folded(change, document, applyTaskChange), ...marks];
      }
      case 'flow': {
        // If one turn saves several checkpoints, only the last one becomes a version.
        const change = flowStateChange(write.flow, this.flowChanges(write.flow).slice(-1));
        const fold = document && foldOf(document, applyFlowChange, FOLD_FLOW_AT);
        // If the flow was deleted meanwhile, its checkpoints must not be stored again.
        return fold && (await this.isStored(document, write))
          ? [...archiveChanges(write.flow, document, foldedBy(document, fold)), withFold(change, fold)]
          : [change];
      }
    }
  }

  /** The entry would ignore a change that does not fit. The document may have changed since it was read. */
  private async assertFit(
    write: ModuleWrite,
    document: StateDocument | null,
    changes: readonly ToolChange[],
  ): Promise<void> {
    const misfit = (known: StateDocument | null): Error | null =>
      misfitIn(known && valueOf<StoredToolEntry, ToolChange>(known, applyToolChange), changes);
    const error = misfit(document) && misfit(await this.stored(write));
    if (error) throw error;
  }

  private toolChanges(tool: string, key: string): readonly ToolChange[] {
    const changes = this.writes.flatMap((write) =>
      write.module === 'tools' && write.tool === tool && write.key === key ? write.change : [],
    );
    return combineChanges(changes);
  }

  /** Returns the changes of a task without flow states that the next change replaces. */
  private taskChanges(id: string): TaskChange[] {
    return this.writes
      .flatMap((write) => (write.module === 'task' && write.id === id ? write.change : []))
      .filter(({ type }, index, all) => type !== 'flow-state' || all.at(index + 1)?.type !== 'flow-state');
  }

  private flowChanges(flow: string): FlowChange[] {
    return this.writes.flatMap((write) => (write.module === 'flow' && write.flow === flow ? write.change : []));
  }

  private async isStored({ createdAt }: StateDocument, write: ModuleWrite): Promise<boolean> {
    return (await this.stored(write))?.createdAt === createdAt;
  }

  private stored(write: ModuleWrite): Promise<StateDocument | null> {
    return this.store.get({ ...nameOf(write), sessionId: this.sessionId });
  }

  private read(name: StateName): Promise<StateDocument | null> {
    const place = JSON.stringify(name);
    let document = this.documents.get(place);
    if (!document) {
      document = this.store.get({ ...name, sessionId: this.sessionId });
      this.documents.set(place, document);
      document.catch(() => this.documents.delete(place));
    }
    return document;
  }
}

function nameOf(write: ModuleWrite): StateName {
  switch (write.module) {
    case 'tools':
      return toolEntryName(write.tool, write.key);
    case 'task':
      return taskName(write.id);
    case 'flow':
      return flowName(write.flow);
  }
}

/** Returns the value of a document after changes that are not stored yet. */
function valueAfter<Value, Change>(
  document: StateDocument | null,
  changes: readonly Change[],
  apply: ApplyEntry<Value, Change>,
): Value | null {
  // The store sets the actual time when the change is stored.
  const now = new Date().toISOString();
  return changes.reduce((value, change) => apply(value, change, now), document && valueOf(document, apply));
}

function folded<Value, Change>(
  change: StateChange,
  document: StateDocument | null,
  apply: ApplyEntry<Value, Change>,
): StateChange {
  const fold = document && foldOf<Value, Change>(document, apply, FOLD_AT);
  return fold ? withFold(change, fold) : change;
}

function withFold(change: StateChange, fold: StateFold): StateChange {
  return { ...change, append: { ...change.append, fold } };
}
