import { type JsonValue } from '../common/json.js';
import { type StateDocument, type DocumentStore } from '../ledger/state.store.js';
import { type OrchestrationRules } from './apply-entry.js';
import { plansIn } from './orchestration-document.js';
import { type OrchestrationSettings } from './orchestration.settings.js';
import { type StepPlan } from './step-plan.js';

type Plan = Pick<StepPlan, 'steps'>;

/** No session has such an id, so that none takes the plans with it when it is deleted. */
const NO_SESSION = ':plans';

/**
 * The plans by which stored entries were decided, by signature. They are kept in the store, once each, so that a process
 * reads a state as the one that wrote it did, though it has another version of the plan, or none.
 */
export class PlanCatalog {
  private readonly known = new Map<string, Plan>();
  private readonly published = new Map<string, Promise<unknown>>();

  constructor(
    private readonly store: DocumentStore,
    private readonly settings: Pick<OrchestrationSettings, 'namespace'>,
  ) {}

  /** Done before the first entry names the plan; without effect when it is there. */
  async publish(plan: StepPlan): Promise<void> {
    const { signature, steps } = plan;
    this.known.set(signature, plan);
    let stored = this.published.get(signature);
    if (!stored) {
      stored = this.store.set(this.address(signature), steps as unknown as JsonValue, { ifVersion: 0 });
      this.published.set(signature, stored);
      // The next one tries again.
      stored.catch(() => this.published.delete(signature));
    }
    await stored;
  }

  /** What a document is read by. Asks the store only for a plan that this process has never seen. */
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
