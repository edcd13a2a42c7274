/** The type of an object that is built field by field, which is faster in V8 than spreading objects. */
export type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };
