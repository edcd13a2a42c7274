import { type Type } from '@nestjs/common';
import { isName, NAME_RULE } from '../common/ids.js';
import { withMissing } from '../common/required-methods.js';
import { SessionsConfigurationError } from '../common/sessions.error.js';
import { LimitedModule } from './limited-module.js';
import {
  isStateModule,
  missingOfStateModule,
  STATE_MODULES,
  type StateInspection,
  type StateModule,
  stateModuleName,
} from './state-module.js';
import { moduleDisabled } from './state.errors.js';

/** A custom module. */
interface OwnModule {
  readonly type: Type<StateModule>;
  readonly module: StateModule;
  readonly limited: LimitedModule;
}

/**
 * The enabled modules of this process: built-in modules in their order, then custom modules in the order of
 * registration.
 */
export class StateModules {
  private readonly modules = new Map<string, StateInspection>();
  private readonly own = new Map<string, OwnModule>();

  /**
   * @param builtIn the enabled built-in modules, in their order
   * @param hookTimeoutMs the timeout of hooks of custom modules, in milliseconds
   */
  constructor(
    builtIn: ReadonlyMap<string, StateInspection>,
    private readonly hookTimeoutMs: number,
  ) {
    for (const [name, module] of builtIn) this.modules.set(name, module);
  }

  /** @throws SessionsConfigurationError if the name is taken or the value is not a state module */
  register(type: Type<StateModule>, module: unknown): void {
    const name = stateModuleName(type) ?? '';
    const fail = (problem: string): never => {
      throw new SessionsConfigurationError(`The state module ${type.name}: ${problem}`);
    };
    if (!isName(name)) fail(`its name ${NAME_RULE}`);
    if ((STATE_MODULES as readonly string[]).includes(name))
      fail(`its name must not be ${name}, which is a built-in module.`);
    if (!isStateModule(module)) {
      return fail(
        withMissing('it must have the methods describe() and reset().', module, missingOfStateModule(module)),
      );
    }
    const known = this.own.get(name);
    if (known && known.module !== module)
      fail(`its name ${JSON.stringify(name)} is already in use. Names must be unique.`);
    const limited = new LimitedModule(name, module, this.hookTimeoutMs);
    this.own.set(name, { type, module, limited });
    this.modules.set(name, limited);
  }

  names(): string[] {
    return [...this.modules.keys()];
  }

  get(name: string): StateInspection | undefined {
    return this.modules.get(name);
  }

  /** Returns a custom module, whose hooks have a time limit. */
  ownModule(name: string): StateModule | undefined {
    return this.own.get(name)?.limited;
  }

  /** @throws StateModuleError (`STATE_MODULE_DISABLED`) */
  instanceOf<T extends StateModule>(type: Type<T>): T {
    const name = stateModuleName(type);
    const own = name === undefined ? undefined : this.own.get(name);
    // A subclass has the name of its base class.
    if (own?.type !== type) throw moduleDisabled(name ?? type.name, this.names());
    return own.module as T;
  }
}
