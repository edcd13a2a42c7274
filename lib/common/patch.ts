/**
 * A part of the properties. Unlike those of `Partial`, they also accept `undefined` in applications with `exactOptionalPropertyTypes`
 * (FIX-78): the build adds it.
 * @inline
 */
export type Patch<T> = { [Key in keyof T]?: T[Key] };

/**
 * Options of another package, which accept `undefined` for each optional one in applications with `exactOptionalPropertyTypes` (FIX-78).
 * @inline
 */
export type Loose<T> = T extends unknown
  ? { [Key in keyof T]: Record<never, never> extends Pick<T, Key> ? T[Key] | undefined : T[Key] }
  : never;
