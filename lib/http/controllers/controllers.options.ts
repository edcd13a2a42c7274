import { type CanActivate, type ModuleMetadata, type Type } from '@nestjs/common';
import { Allow } from 'class-validator';
import { MustBeBoolean, Optional, Must, MustBeInteger } from '../../common/check-input.js';
import { isName } from '../../common/ids.js';
import { WHEN_BUSY, type WhenBusy } from '../../ledger/turn.js';
import { type OrchestratorRef } from '../../orchestration/orchestrator-ref.js';

/** Options of every controller of this package. */
export class ControllerOptions {
  /**
   * At least one guard, which controls access and authenticates the user. They run before everything else. Classes,
   * which may inject the providers of `imports` and global modules; or instances.
   */
  @Must(
    (value) => Array.isArray(value) && value.length > 0 && value.every(isGuard),
    'must list at least one guard: a class with canActivate, or an instance of one.',
  )
  guards!: readonly (Type<CanActivate> | CanActivate)[];

  /** The path of its routes. Default: the name of the controller. */
  @Optional()
  @Must((value) => typeof value === 'string' && PATH.test(value), 'must be a path, for example admin/state.')
  path?: string;

  /** Modules whose providers the guards inject. Default: global modules only. */
  @Allow()
  imports?: ModuleMetadata['imports'];
}

const PATH = /^[\w-]+(\/[\w-]+)*$/;

function isGuard(value: unknown): boolean {
  const guard: unknown = typeof value === 'function' ? value.prototype : value;
  return (
    typeof guard === 'object' && guard !== null && 'canActivate' in guard && typeof guard.canActivate === 'function'
  );
}

/** Validates the orchestrators that clients may use. */
function MustBeOrchestrators(): PropertyDecorator {
  return Must(
    (value) => Array.isArray(value) && value.length > 0 && value.every(isOrchestrator),
    'must list at least one orchestrator: a class, a definition or a name.',
  );
}

/** The control plane over HTTP: `POST {path}/describe`, `{path}/reset` and `{path}/compact`. Default path `state`. */
export class StateControllerOptions extends ControllerOptions {}

/** The turns of the principal's own sessions over HTTP, see docs/controllers.md. Default path `turns`. */
export class TurnsControllerOptions extends ControllerOptions {
  /**
   * The orchestrators that clients may use, by class, definition or name. Turns of others are neither accepted nor
   * returned. A client that names none uses the only one.
   */
  @MustBeOrchestrators()
  orchestrators!: readonly (OrchestratorRef | string)[];

  /**
   * The policies that a client may choose. They affect every turn of the session's lane, including those of
   * orchestrators that clients may not use. Default: none, so that `turns.whenBusy` applies.
   */
  @Optional()
  @Must(
    (value) => Array.isArray(value) && value.every((policy) => WHEN_BUSY.includes(policy as WhenBusy)),
    `must list policies: ${WHEN_BUSY.join(', ')}.`,
  )
  whenBusy?: readonly WhenBusy[];

  /** Maximum number of event streams per principal and process. Default 16. */
  @Optional()
  @MustBeInteger(1, Number.MAX_SAFE_INTEGER)
  maxStreamsPerPrincipal?: number;
}

function isOrchestrator(value: unknown): boolean {
  const name = typeof value === 'string' ? value : (value as { readonly name?: unknown } | null | undefined)?.name;
  return isName(name);
}

/** The principal's own sessions over HTTP, see docs/controllers.md. Default path `sessions`. */
export class SessionsControllerOptions extends ControllerOptions {
  /** True if a client may choose the id of a new session (NST-17). Default false. */
  @Optional()
  @MustBeBoolean()
  allowClientIds?: boolean;
}

/** The routes for chat front ends of the AI SDK (AIS-10), see docs/ai-sdk.md. Default path `chat`. */
export class ChatControllerOptions extends ControllerOptions {
  /**
   * The orchestrators that clients may use, by class, definition or name. Messages of others are not returned. A client
   * that names none uses the only one.
   */
  @MustBeOrchestrators()
  orchestrators!: readonly (OrchestratorRef | string)[];

  /**
   * The version of `ai` that the clients use: 6 or 7. Clients of version 7 can replace the end of an answer if a repeated
   * model call answers differently. Clients of version 6 then show an error until they resume. Default 7.
   */
  @Optional()
  @Must((value) => value === 6 || value === 7, 'must be 6 or 7.')
  protocol?: 6 | 7;

  /**
   * True if the session of a new chat gets the id that the client chose. If false, the server generates it, and the
   * client's id becomes a surface of the session. Default true.
   */
  @Optional()
  @MustBeBoolean()
  allowClientIds?: boolean;

  /** Maximum number of streams per principal and process. Default 16. */
  @Optional()
  @MustBeInteger(1, Number.MAX_SAFE_INTEGER)
  maxStreamsPerPrincipal?: number;
}

/** The controllers of this package (NST-16). Controllers that are not listed are disabled. */
export class SessionsControllersOptions {
  /** Creates, returns and ends the sessions of the user. Default: disabled. */
  @Allow()
  sessions?: SessionsControllerOptions;

  /** Submits messages, and streams and cancels turns. Default: disabled. */
  @Allow()
  turns?: TurnsControllerOptions;

  /** Serves `useChat` and other chat front ends of the AI SDK. Default: disabled. */
  @Allow()
  chat?: ChatControllerOptions;

  /** The control plane: describes, resets and compacts the state of sessions. Default: disabled. */
  @Allow()
  state?: StateControllerOptions;
}
