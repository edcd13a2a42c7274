import { type ArgumentsHost, type ExecutionContext } from '@nestjs/common';

/** The parts of a request that may contain an id. `data` is a body, a message payload, or the arguments of a field. */
export type SourceKind = 'header' | 'param' | 'query' | 'cookie' | 'data';

export const SOURCE_KINDS: readonly SourceKind[] = ['header', 'param', 'query', 'cookie', 'data'];

/** The location of an id by kind and name, for example `header:x-session-id`. */
export type IdPlace = `${SourceKind}:${string}`;

/** The transport-specific operations of guards, decorators and the filter. */
export interface Transport {
  /** The name of a request of this transport in error messages. */
  readonly subject: string;

  /** The default locations of the ids. */
  readonly sessionAt: IdPlace;
  readonly turnAt: IdPlace;

  /** Returns the parts of the request by kind. A missing or `undefined` kind does not exist in this transport. */
  parts(host: ArgumentsHost): Readonly<Partial<Record<SourceKind, unknown>>>;

  /** The location that `user` reads, for log messages; `null` if it reads none. */
  readonly userAt: string | null;

  /** Returns the user that the application's authentication set. Never reads a payload, because clients write it. */
  user(host: ArgumentsHost): unknown;

  /**
   * Returns objects that belong only to this run of the handler, nearest first. Results are stored for the first one and looked
   * up for all of them.
   */
  carriers(host: ArgumentsHost): readonly object[];
}

/** Returns the name of the handler for error messages, for example `ChatController.say`. */
export function handlerName(context: ExecutionContext): string {
  return `${context.getClass().name}.${context.getHandler().name}`;
}
