import { type Type } from '@nestjs/common';
import { isName, NAME_RULE } from '../common/ids.js';
import { SessionsConfigurationError } from '../common/sessions.error.js';
import {
  isStateModule,
  STATE_MODULES,
  type StateInspection,
  type StateModule,
  stateModuleName,
} from './state-module.js';
import { StateModuleDisabledError } from './state.errors.js';

/** The modules that are enabled in this process: the package's in their order, then the application's as they were registered. */
export class StateModules {
  private readonly modules = new Map<string, StateInspection>();
  private readonly own = new Map<string, { readonly type: Type<StateModule>; readonly module: StateModule }>();

  /** @param builtIn those of the package that are enabled, in their order */
  constructor(builtIn: ReadonlyMap<string, StateInspection>) {
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
    this.own.set(name, { type, module });
    this.modules.set(name, module);
  }

  names(): string[] {
    return [...this.modules.keys()];
  }

  get(name: string): StateInspection | undefined {
    return this.modules.get(name);
  }

  /** One of the application's. */
  ownModule(name: string): StateModule | undefined {
    return this.own.get(name)?.module;
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
