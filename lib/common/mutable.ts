/** For an object that is made field by field: V8 adds a field in no time, and spreads an object into another one slowly. */
export type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };
