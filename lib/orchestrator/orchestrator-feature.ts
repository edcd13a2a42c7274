import { type FactoryProvider, type Type } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { findProvider, lazily } from '../common/nest-providers.js';
import { type SessionManagerDefinition } from '../state/session-manager.js';
import { type StateModule } from '../state/state-module.js';
import { SessionStore } from '../session/session-store.service.js';
import { tooEarly } from '../turn/start-phase.js';
import { TurnService } from '../turn/turn.service.js';
import { type StepPlan } from '../orchestration/step-plan.js';
import { type OrchestratorRef, orchestratorName } from '../orchestration/orchestrator-ref.js';
import { missingRoot } from './assert-root.js';
import { getOrchestratorToken } from './orchestrator.decorators.js';
import { ConversationCommands } from './conversation-commands.js';
import { OrchestratorEvents } from './orchestrator-events.js';
import { OrchestratorHandle } from './orchestrator-handle.js';
import { type OrchestratorPlace } from './orchestrator-place.js';
import { OrchestratorRegistry } from './orchestrator.registry.js';
import { TimeTravel } from './time-travel.js';

/**
 * The value of a provider for each class that `forFeature` lists, so that `overrideProvider` can replace the class in tests (FIX-79). The
 * explorer removes those that were not replaced.
 */
export const LISTED_BY_FEATURE = Symbol('agent-sessions:listed-by-feature');

/** The orchestrators, plans, session managers and state modules of one `forFeature` call. The explorer reads them. */
export class OrchestratorFeature {
  constructor(
    readonly orchestrators: readonly OrchestratorRef[],
    readonly plans: readonly StepPlan[],
    readonly managers: readonly SessionManagerDefinition[],
    readonly stateModules: readonly Type<StateModule>[],
  ) {}

  /** The call, for messages: `SessionsModule.forFeature([SupportDesk])`. */
  get call(): string {
    const names = [
      ...[...this.orchestrators, ...this.stateModules].map(({ name }) => name),
      ...this.plans.map(({ agent }) => agent),
      ...this.managers.map(({ namespace }) => namespace),
    ];
    return `SessionsModule.forFeature([${names.join(', ')}])`;
  }
}

/**
 * Provides the handle of an orchestrator. The handle resolves its services at the first use, so a feature module does
 * not have to import the module that `forRoot` created.
 */
export function handleProvider(orchestrator: OrchestratorRef): FactoryProvider<OrchestratorHandle> {
  const name = orchestratorName(orchestrator);
  return {
    provide: getOrchestratorToken(orchestrator),
    inject: [ModuleRef],
    useFactory: (moduleRef: ModuleRef) =>
      new OrchestratorHandle(
        name,
        lazily(() => resolve(moduleRef, name)),
        lazily(() => resolveEvents(moduleRef, name)),
      ),
  };
}

function resolve(moduleRef: ModuleRef, name: string): OrchestratorPlace {
  const turns = findProvider(moduleRef, TurnService);
  const sessions = findProvider(moduleRef, SessionStore);
  const commands = findProvider(moduleRef, ConversationCommands);
  const timeTravel = findProvider(moduleRef, TimeTravel);
  const definition = findProvider(moduleRef, OrchestratorRegistry)?.get(name);
  if (!turns || !sessions || !commands || !timeTravel || !definition) throw tooEarly(name);
  return { definition, turns, sessions, commands, timeTravel };
}

/** `OrchestratorEvents` has no dependencies, so it exists before any provider that injects a handle. */
function resolveEvents(moduleRef: ModuleRef, name: string): OrchestratorEvents {
  const events = findProvider(moduleRef, OrchestratorEvents);
  if (!events) throw missingRoot(`The orchestrator ${name}`);
  return events;
}
