import { SessionsConfigurationError } from '../common/sessions.error.js';
import { messagesToLoad } from '../conversation/history-window.js';
import { STATE_MODULES } from '../state/state-module.js';
import { moduleDisabled } from '../state/state.errors.js';
import { assertConversation } from '../state/state.settings.js';
import { type OrchestratorDefinition } from './orchestrator.js';

/** The orchestrators of this process by name. */
export class OrchestratorRegistry {
  private readonly definitions = new Map<string, OrchestratorDefinition>();
  private windowsByName: Record<string, number> = {};
  private reading: readonly OrchestratorDefinition[] = [];

  /** @param modules the enabled state modules of the package */
  constructor(private readonly modules: readonly string[] = STATE_MODULES) {}

  /** True if turns read and write the conversation log (FIX-46). */
  get logsConversations(): boolean {
    return this.modules.includes('conversation');
  }

  /** @throws StateModuleError (`STATE_MODULE_DISABLED`) when turns do not log conversations. @param use the feature that needs the log */
  assertLog(use: string): void {
    if (!this.logsConversations) throw moduleDisabled('conversation', this.modules, use);
  }

  /**
   * @throws SessionsConfigurationError when another orchestrator has the name, or when compaction is set without
   * conversations
   */
  register(definition: OrchestratorDefinition): void {
    const known = this.definitions.get(definition.name);
    if (known && known !== definition) {
      throw new SessionsConfigurationError(
        `Two orchestrators are named ${JSON.stringify(definition.name)}. Names must be unique.`,
      );
    }
    if (definition.compaction) assertConversation(this.modules, `Orchestrator ${definition.name}: compaction`);
    this.definitions.set(definition.name, definition);
    this.reading = [...this.definitions.values()].filter((one) => one.plan ?? this.readsConversation(one));
    const window = this.logsConversations ? historyOf(definition) : 0;
    this.windowsByName = { ...this.windowsByName, [definition.name]: window };
  }

  get(name: string): OrchestratorDefinition | undefined {
    return this.definitions.get(name);
  }

  names(): string[] {
    return [...this.definitions.keys()];
  }

  /** Returns true if the orchestrator's turns need the head of the conversation, which they use to read the log. */
  readsConversation(definition: OrchestratorDefinition): boolean {
    return this.logsConversations && historyOf(definition) > 0;
  }

  /** Returns the orchestrators whose turns need state documents of the session. */
  readers(): readonly OrchestratorDefinition[] {
    return this.reading;
  }

  /** Returns the orchestrators that have a compaction policy. */
  compacting(): OrchestratorDefinition[] {
    return [...this.definitions.values()].filter(({ compaction }) => compaction);
  }

  /** Returns an orchestrator that counts tokens, if there is one. */
  counting(): OrchestratorDefinition | undefined {
    return [...this.definitions.values()].find(({ historyWindow: { router, agents }, compaction }) => {
      const counted = [router, agents].some((window) => typeof window === 'object');
      return counted || compaction?.afterTokens !== undefined;
    });
  }

  /** Returns the number of messages that turns of each orchestrator load, by its name. */
  windows(): Readonly<Record<string, number>> {
    return this.windowsByName;
  }
}

/**
 * Returns the number of messages to load. Compaction needs the last message; if it counts tokens, it needs the whole
 * window.
 */
export function historyOf({ historyWindow, compaction }: OrchestratorDefinition): number {
  const counted = compaction?.afterTokens === undefined ? 1 : historyWindow.loadLimit;
  return Math.max(messagesToLoad(historyWindow), compaction ? counted : 0);
}
