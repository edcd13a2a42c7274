import { type ValidationError, ValidateBy, ValidateIf, isISO8601, validateSync } from 'class-validator';
import { isName, NAME_RULE } from './ids.js';
import { problemOf } from './input-problem.js';
import { isFields } from './json.js';
import { InvalidInputError } from './sessions.error.js';
import { addValueRule, isCertainlyValid, isKnownKey, unknownKeyOf } from './value-rules.js';

const UNKNOWN_KEY = 'is not a known key.';

/** The first thing that is wrong with an input: where it stands, its value, and what is allowed. */
export interface InputProblem {
  readonly path: string;
  readonly value: unknown;
  readonly rule: string;
}

/**
 * Checks a caller's object against the class-validator rules of `type`; unknown keys are refused.
 * @returns a shallow copy that is an instance of `type`
 * @throws InvalidInputError naming the first wrong value
 */
export function checkInput<T extends object>(type: new () => T, input: unknown, path: string): T {
  const checked = validateInput(type, input, path);
  if ('value' in checked) return checked.value;
  const { path: at, rule, value } = checked.problem;
  throw new InvalidInputError(at, rule === UNKNOWN_KEY ? rule : problemOf(rule, value));
}

/** As {@link checkInput}, but hands the problem back. */
export function validateInput<T extends object>(
  type: new () => T,
  input: unknown,
  path: string,
): { value: T } | { problem: InputProblem } {
  if (!isFields(input)) {
    return { problem: { path, value: input, rule: 'must be an object.' } };
  }
  // First, so that many unknown keys cost little. Assigning __proto__ would also change the copy.
  const unknown = unknownKeyOf(type, input);
  if (unknown !== undefined) {
    return { problem: { path: inside(path, unknown), value: input[unknown], rule: UNKNOWN_KEY } };
  }
  // Shallow on purpose: stores, functions and the application's JSON must arrive as they are.
  const value = Object.assign(new type(), input);
  if (isCertainlyValid(type, value)) return { value };
  const errors = validateSync(value, { whitelist: true, forbidNonWhitelisted: true, forbidUnknownValues: false });
  const [error] = errors;
  return error ? { problem: toProblem(error, path) } : { value };
}

/** @throws InvalidInputError if `type` has no rule for the key */
export function assertKnownKey(type: new () => object, key: string, path: string): void {
  if (!isKnownKey(type, key)) throw new InvalidInputError(inside(path, key), UNKNOWN_KEY);
}

/** The property may be left out; `null` is not "left out". */
export const Optional = (): PropertyDecorator => (prototype, key) => {
  ValidateIf((_, value: unknown) => value !== undefined)(prototype, key);
  addValueRule(prototype, { key: String(key), allows: null });
};

/** A rule with the sentence that says what is allowed. */
export const Must =
  (allows: (value: unknown) => boolean, rule: string): PropertyDecorator =>
  (prototype, key) => {
    ValidateBy({ name: rule, validator: { validate: allows, defaultMessage: () => rule } })(prototype, key);
    addValueRule(prototype, { key: String(key), allows });
  };

/** An opaque name, see `isName`. */
export const MustBeName = (): PropertyDecorator => Must(isName, NAME_RULE);

/** An ISO-8601 time with a zone, so that it means the same moment everywhere. */
export const MustBeTime = (): PropertyDecorator =>
  Must(
    (value) =>
      isISO8601(value, { strict: true, strictSeparator: true }) &&
      /(Z|[+-]\d\d:?\d\d)$/.test(value as string) &&
      // The standard has week dates and more, which JavaScript does not read.
      !Number.isNaN(Date.parse(value as string)),
    'must be an ISO-8601 time with a zone, for example 2026-11-21T08:00:00.000Z.',
  );

/** An integer within bounds, both included. */
export const MustBeInteger = (min: number, max: number): PropertyDecorator =>
  Must((value) => isIntegerWithin(value, min, max), `must be an integer from ${min} to ${max}.`);

export const MustBeBoolean = (): PropertyDecorator => Must((value) => typeof value === 'boolean', 'must be a boolean.');

/** Both bounds are included. */
export function isIntegerWithin(value: unknown, min: number, max: number): value is number {
  return Number.isInteger(value) && (value as number) >= min && (value as number) <= max;
}

function toProblem(error: ValidationError, parent: string): InputProblem {
  const [name, message] = Object.entries(error.constraints ?? {})[0] ?? ['', 'is not valid.'];
  const rule = name === 'whitelistValidation' ? UNKNOWN_KEY : message;
  return { path: inside(parent, error.property), value: error.value, rule };
}

function inside(path: string, key: string): string {
  return path === '' ? key : `${path}.${key}`;
}
