import { type ArgumentsHost } from '@nestjs/common';

/** The kinds of places where an id may stand; `data` is a body, a message's payload, or the arguments of a field. */
export type SourceKind = 'header' | 'param' | 'query' | 'cookie' | 'data';

/** Such a place by its name there, for example `header:x-session-id`. */
export type IdPlace = `${SourceKind}:${string}`;

/** What guards, decorators and the filter must know of a transport; Nest gives them its handler's arguments. */
export interface Transport {
  /** As errors name what arrives by it. */
  readonly subject: string;

  /** Where the ids stand unless the handler says otherwise. */
  readonly sessionAt: IdPlace;
  readonly turnAt: IdPlace;

  /** What arrived, by kind of source. A kind that is left out, or `undefined`, does not exist here. */
  parts(host: ArgumentsHost): Readonly<Partial<Record<SourceKind, unknown>>>;

  /** Where `user` looks, as hints name it; `null` where it looks nowhere. */
  readonly userAt: string | null;

  /** What the application's authentication left where it can be found. Never of a payload: clients write those. */
  user(host: ArgumentsHost): unknown;

  /**
   * Objects that belong to this one run of a handler and to nothing that runs at the same time, nearest first: what is found out
   * is kept by the first, and looked for at the others as well.
   */
  carriers(host: ArgumentsHost): readonly object[];
}
