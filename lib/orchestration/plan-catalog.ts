import { type JsonValue } from '../common/json.js';
import { type StateDocument, type DocumentStore } from '../ledger/state.store.js';
import { type OrchestrationRules } from './apply-entry.js';
import { plansIn } from './orchestration-document.js';
import { type OrchestrationSettings } from './orchestration.settings.js';
import { type StepPlan } from './step-plan.js';

type Plan = Pick<StepPlan, 'steps'>;

/** Not a valid session id, so that deleting a session never deletes the plans. */
const NO_SESSION = ':plans';

/**
 * The plans that stored entries refer to, by signature. Each is stored once, so that a process reads a state exactly as
 * its writer did, even if it has another version of the plan, or no plan.
 */
export class PlanCatalog {
  private readonly known = new Map<string, Plan>();
  private readonly published = new Map<string, Promise<unknown>>();

  constructor(
    private readonly store: DocumentStore,
    private readonly settings: Pick<OrchestrationSettings, 'namespace'>,
  ) {}

  /** Stores the plan before the first entry that names it. Has no effect if it is stored already. */
  async publish(plan: StepPlan): Promise<void> {
    const { signature, steps } = plan;
    this.known.set(signature, plan);
    let stored = this.published.get(signature);
    if (!stored) {
      stored = this.store.set(this.address(signature), steps as unknown as JsonValue, { ifVersion: 0 });
      this.published.set(signature, stored);
      // The next call retries.
      stored.catch(() => this.published.delete(signature));
    }
    await stored;
  }

  /** Returns the rules for reading a document. Reads the store only for plans that this process has not seen. */
  async rulesFor(document: StateDocument): Promise<OrchestrationRules> {
    for (const signature of plansIn(document)) {
      if (!this.known.has(signature)) await this.load(signature);
    }
    return this.rules;
  }

  readonly rules: OrchestrationRules = {
    plan: (signature) => this.known.get(signature),
  };

  private async load(signature: string): Promise<void> {
    const document = await this.store.get(this.address(signature));
    if (document) this.known.set(signature, { steps: document.value as unknown as StepPlan['steps'] });
  }

  private address(signature: string): Parameters<DocumentStore['get']>[0] {
    return { namespace: `${this.settings.namespace}:plans`, scope: '', sessionId: NO_SESSION, key: signature };
  }
}
