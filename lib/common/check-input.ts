import {
  type ValidationArguments,
  type ValidationError,
  ValidateBy,
  ValidateIf,
  isISO8601,
  validateSync,
} from 'class-validator';
import { isName, NAME_RULE, problemOf } from './ids.js';
import { isFields } from './json.js';
import { UNKNOWN_KEY, unknownKeyRule } from './known-keys.js';
import { withMissing } from './required-methods.js';
import { InvalidInputError } from './sessions.error.js';
import { addValueRule, isCertainlyValid, isKnownKey, knownKeysOf, unknownKeyOf } from './value-rules.js';

/** The first problem of an input: the path, the value and the rule. */
export interface InputProblem {
  readonly path: string;
  readonly value: unknown;
  readonly rule: string;
}

/**
 * Validates a caller's object with the class-validator rules of `type`. Unknown keys are rejected.
 * @returns a shallow copy that is an instance of `type`
 * @throws InvalidInputError naming the first wrong value
 */
export function checkInput<T extends object>(type: new () => T, input: unknown, path: string): T {
  const checked = validateInput(type, input, path);
  return 'value' in checked ? checked.value : throwProblem(checked.problem);
}

/** @throws InvalidInputError */
export function throwProblem({ path, rule, value }: InputProblem): never {
  throw new InvalidInputError(path, rule.startsWith(UNKNOWN_KEY) ? rule : problemOf(rule, value));
}

/** Validates like {@link checkInput}, but returns the problem instead of throwing. */
export function validateInput<T extends object>(
  type: new () => T,
  input: unknown,
  path: string,
  others: readonly string[] = [],
): { value: T } | { problem: InputProblem } {
  if (!isFields(input)) {
    return { problem: { path, value: input, rule: 'must be an object.' } };
  }
  // Check unknown keys first, so that many of them cost little. Assigning __proto__ would also change the copy.
  const problem = unknownKeyProblem(type, input, path, others);
  if (problem) return { problem };
  // Copy shallowly: stores, functions and the application's JSON must be passed unchanged.
  const value = Object.assign(new type(), input);
  if (isCertainlyValid(type, value)) return { value };
  const errors = validateSync(value, { whitelist: true, forbidNonWhitelisted: true, forbidUnknownValues: false });
  const [error] = errors;
  return error ? { problem: toProblem(error, path) } : { value };
}

/** Returns the problem of the first key for which `type` has no rule. @param others keys that are checked elsewhere */
export function unknownKeyProblem(
  type: new () => object,
  input: Readonly<Record<string, unknown>>,
  path: string,
  others: readonly string[] = [],
): InputProblem | undefined {
  const unknown = unknownKeyOf(type, input);
  if (unknown === undefined) return undefined;
  const allowed = [...knownKeysOf(type), ...(others.includes(unknown) ? [] : others)];
  return { path: insidePath(path, unknown), value: input[unknown], rule: unknownKeyRule(unknown, allowed) };
}

/** @throws InvalidInputError if `type` has no rule for the key */
export function assertKnownKey(type: new () => object, key: string, path: string): void {
  if (!isKnownKey(type, key)) {
    throw new InvalidInputError(insidePath(path, key), unknownKeyRule(key, knownKeysOf(type)));
  }
}

/** Makes the property optional. `null` does not count as undefined. */
export const Optional = (): PropertyDecorator => (prototype, key) => {
  ValidateIf((_, value: unknown) => value !== undefined)(prototype, key);
  addValueRule(prototype, { key: String(key), allows: null });
};

/** Adds a rule, and the sentence that describes the allowed values. @param rule may depend on the rejected value */
export const Must =
  (allows: (value: unknown) => boolean, rule: string | ((value: unknown) => string)): PropertyDecorator =>
  (prototype, key) => {
    const ruleOf: (value: unknown) => string = typeof rule === 'string' ? () => rule : rule;
    const defaultMessage = (rejected?: ValidationArguments): string => ruleOf(rejected?.value);
    const name = typeof rule === 'string' ? rule : String(key);
    ValidateBy({ name, validator: { validate: allows, defaultMessage } })(prototype, key);
    addValueRule(prototype, { key: String(key), allows });
  };

/** Requires an object with certain members. The message names the first one that is missing, which `missing` returns. */
export const MustHave = (missing: (value: unknown) => string | undefined, rule: string): PropertyDecorator =>
  Must(
    (value) => missing(value) === undefined,
    (value) => withMissing(rule, value, missing(value)),
  );

/** Requires an opaque name, see `isName`. */
export const MustBeName = (): PropertyDecorator => Must(isName, NAME_RULE);

/** Requires an ISO-8601 time with a time zone, so that it is unambiguous. */
export const MustBeTime = (): PropertyDecorator =>
  Must(
    (value) =>
      isISO8601(value, { strict: true, strictSeparator: true }) &&
      /(Z|[+-]\d\d:?\d\d)$/.test(value as string) &&
      // The standard includes week dates and other forms that JavaScript cannot parse.
      !Number.isNaN(Date.parse(value as string)),
    'must be an ISO-8601 time with a zone, for example 2026-11-21T08:00:00.000Z.',
  );

/** Requires an integer within inclusive bounds. */
export const MustBeInteger = (min: number, max: number): PropertyDecorator =>
  Must((value) => isIntegerWithin(value, min, max), `must be an integer from ${min} to ${max}.`);

export const MustBeBoolean = (): PropertyDecorator => Must((value) => typeof value === 'boolean', 'must be a boolean.');

/** Returns whether the value is an integer within inclusive bounds. */
export function isIntegerWithin(value: unknown, min: number, max: number): value is number {
  return Number.isInteger(value) && (value as number) >= min && (value as number) <= max;
}

/** Descends to the first rule: an object whose nested object is invalid has none. */
function toProblem(error: ValidationError, parent: string): InputProblem {
  const path = Array.isArray(error.target) ? `${parent}[${error.property}]` : insidePath(parent, error.property);
  const [rule] = Object.entries(error.constraints ?? {});
  const [child] = error.children ?? [];
  if (!rule && child) return toProblem(child, path);
  const [name, message] = rule ?? ['', 'is not valid.'];
  return { path, value: error.value, rule: name === 'whitelistValidation' ? UNKNOWN_KEY : message };
}

/** Returns the path of a property. */
export function insidePath(path: string, key: string): string {
  return path === '' ? key : `${path}.${key}`;
}
