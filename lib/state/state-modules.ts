import { type Type } from '@nestjs/common';
import { isName, NAME_RULE } from '../common/ids.js';
import { SessionsConfigurationError } from '../common/sessions.error.js';
import { LimitedModule } from './limited-module.js';
import {
  isStateModule,
  STATE_MODULES,
  type StateInspection,
  type StateModule,
  stateModuleName,
} from './state-module.js';
import { StateModuleDisabledError } from './state.errors.js';

/** A module of the application. */
interface OwnModule {
  readonly type: Type<StateModule>;
  readonly module: StateModule;
  readonly limited: LimitedModule;
}

/** The modules that are enabled in this process: the package's in their order, then the application's as they were registered. */
export class StateModules {
  private readonly modules = new Map<string, StateInspection>();
  private readonly own = new Map<string, OwnModule>();

  /**
   * @param builtIn those of the package that are enabled, in their order
   * @param hookTimeoutMs the limit of a hook of the application's modules
   */
  constructor(
    builtIn: ReadonlyMap<string, StateInspection>,
    private readonly hookTimeoutMs: number,
  ) {
    for (const [name, module] of builtIn) this.modules.set(name, module);
  }

  /** @throws SessionsConfigurationError for a name that is taken, and for what is no module */
  register(type: Type<StateModule>, module: unknown): void {
    const name = stateModuleName(type) ?? '';
    const fail = (problem: string): never => {
      throw new SessionsConfigurationError(`The state module ${type.name}: ${problem}`);
    };
    if (!isName(name)) fail(`its name ${NAME_RULE}`);
    if ((STATE_MODULES as readonly string[]).includes(name))
      fail(`the name ${name} is that of a module of the package.`);
    if (!isStateModule(module)) return fail('it must have the methods describe() and reset().');
    const known = this.own.get(name);
    if (known && known.module !== module) fail(`another one is named ${JSON.stringify(name)}; names must be unique.`);
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

  /** One of the application's, with the time limit of its hooks. */
  ownModule(name: string): StateModule | undefined {
    return this.own.get(name)?.limited;
  }

  /** @throws StateModuleDisabledError */
  instanceOf<T extends StateModule>(type: Type<T>): T {
    const name = stateModuleName(type);
    const own = name === undefined ? undefined : this.own.get(name);
    // A class has the name of the one that it extends.
    if (own?.type !== type) throw new StateModuleDisabledError(name ?? type.name, this.names());
    return own.module as T;
  }
}
