import { type JsonValue } from './json.js';

/**
 * Accepts the types that JSON preserves. For another type, the compiler's message contains the problem (DAY-05). Types that only the
 * runtime knows, such as `any` and `unknown`, are accepted and checked there.
 */
export type JsonCheck<T> = [NotJsonIn<T>] extends [never] ? unknown : { readonly problem: NotJsonIn<T> };

/** Names the parts of a type that JSON does not preserve. Deep parts of recursive types are not searched. */
export type NotJsonIn<T, Path extends string = '', Depth extends readonly unknown[] = []> = 0 extends 1 & T
  ? never // any
  : unknown extends T
    ? never
    : Depth['length'] extends 5
      ? never
      : T extends JsonValue | undefined | void
        ? never
        : T extends readonly (infer Item)[]
          ? NotJsonIn<Item, `${Path}[]`, [...Depth, 0]>
          : T extends NotJson
            ? `The value${Path} cannot be stored as JSON.`
            : {
                [Key in keyof T]-?: Key extends string ? NotJsonIn<T[Key], `${Path}.${Key}`, [...Depth, 0]> : never;
              }[keyof T];

type NotJson =
  | bigint
  | symbol
  | Date
  | RegExp
  | Iterable<unknown>
  | AsyncIterable<unknown>
  | PromiseLike<unknown>
  | ((...args: never[]) => unknown)
  | (abstract new (...args: never[]) => unknown);
