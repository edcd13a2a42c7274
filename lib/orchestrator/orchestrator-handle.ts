import { type SubmitOptions, type TurnInputLike } from '../turn/turn.inputs.js';
import { type TurnResult } from '../turn/turn-result.js';
import { type TurnService } from '../turn/turn.service.js';
import { type Turn } from '../turn/turn.js';
import { type OrchestratorDefinition } from './orchestrator.js';

/** The state type only documents: it ties a handle to its orchestrator in the reader's mind and in the editor. */
export interface OrchestratorSubmitOptions<State> extends Omit<SubmitOptions, 'state'> {
  /** Merged into the state before dispatch; top-level keys. */
  readonly state?: Partial<State>;
}

export interface OrchestratorExecuteOptions<State> extends OrchestratorSubmitOptions<State> {
  /** Milliseconds after which the caller stops waiting; the turn goes on. Default: no limit. */
  readonly timeoutMs?: number;
}

/** What `@InjectOrchestrator` gives: one orchestrator, ready to take turns (BOT-01). */
export class OrchestratorHandle<State = Record<string, unknown>> {
  constructor(
    readonly name: string,
    private readonly find: () => { readonly turns: TurnService; readonly definition: OrchestratorDefinition },
  ) {}

  get version(): string {
    return this.find().definition.version;
  }

  /** SHA-256 of the orchestrator's structure; known once the application has started. */
  get signature(): string {
    return this.find().definition.signature;
  }

  /** One turn, waited for. @throws as `TurnService.execute` */
  async execute(input: TurnInputLike, options: OrchestratorExecuteOptions<State>): Promise<TurnResult> {
    return this.find().turns.execute(this.name, input, options);
  }

  /** Accepts a turn and returns at once. @throws as `TurnService.submit` */
  async submit(input: TurnInputLike, options: OrchestratorSubmitOptions<State>): Promise<Turn> {
    return this.find().turns.submit(this.name, input, options);
  }
}
