import { getMetadataStorage } from 'class-validator';
import { type InputProblem, insidePath, throwProblem, unknownKeyProblem, validateInput } from './check-input.js';
import { isFields, isPlainObject } from './json.js';
import { loadPeer } from './load-peer.js';

type Schema<T = unknown> = new () => T & object;
type Fields = Record<string, unknown>;

/**
 * Validates a value with a class of the application, whose nested objects may have rules of their own (`@ValidateNested()`, FIX-73).
 * class-validator finds rules by class, so nested objects become instances of the classes that `@Type()` of class-transformer names.
 * Their values are not changed: other decorators of class-transformer have no effect.
 * @throws SessionsConfigurationError if the class has nested rules and class-transformer is missing
 */
export async function validateSchema<T extends object>(
  type: new () => T,
  input: unknown,
  path: string,
): Promise<{ value: T } | { problem: InputProblem }> {
  if (nestedKeysOf(type).length === 0 || !isFields(input)) return validateInput(type, input, path);
  const { plainToInstance } = await loadPeer('class-transformer', () => import('class-transformer'));
  const nesting = new Nesting();
  const fields = nesting.fieldsOf(type, input, plainToInstance(type, structuredClone(input)) as Fields, path);
  return nesting.problem ? { problem: nesting.problem } : validateInput(type, fields, path);
}

/** Validates like {@link validateSchema}. @throws InvalidInputError naming the first wrong value */
export async function checkSchema<T extends object>(type: new () => T, input: unknown, path: string): Promise<T> {
  const checked = await validateSchema(type, input, path);
  return 'value' in checked ? checked.value : throwProblem(checked.problem);
}

/** Returns the fields of an instance, with those of its nested instances, as plain objects. */
export function plainFields(type: Schema, instance: object): Fields {
  const plain = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(plain);
    return isFields(value) ? plainFields(classOf(value), value) : value;
  };
  const fields: Fields = { ...instance };
  for (const key of nestedKeysOf(type)) if (Object.hasOwn(fields, key)) fields[key] = plain(fields[key]);
  return fields;
}

/** Gives nested objects their classes, and records the first problem. */
class Nesting {
  problem: InputProblem | undefined;

  /** @param like the same object as class-transformer converts it: the classes of its nested objects are used */
  fieldsOf(type: Schema, input: Fields, like: Fields, path: string): Fields {
    const fields = { ...input };
    for (const key of nestedKeysOf(type)) {
      if (Object.hasOwn(input, key)) fields[key] = this.nested(input[key], like[key], insidePath(path, key));
    }
    return fields;
  }

  private nested(input: unknown, like: unknown, path: string): unknown {
    if (Array.isArray(input)) {
      const likes: readonly unknown[] = Array.isArray(like) ? like : [];
      return input.map((item, at) => this.nested(item, likes[at], `${path}[${at}]`));
    }
    if (!isFields(input)) return input;
    if (!isFields(like) || isPlainObject(like)) {
      this.problem ??= {
        path,
        value: input,
        rule: 'has rules of an unknown class. Add @Type(() => TheClass) next to @ValidateNested().',
      };
      return input;
    }
    const type = classOf(like);
    this.problem ??= unknownKeyProblem(type, input, path);
    return Object.assign(new type(), this.fieldsOf(type, input, like, path));
  }
}

/** Returns the class of an object. Its JSON may have a key `constructor`. */
function classOf(value: object): Schema {
  return (Object.getPrototypeOf(value) as { readonly constructor: Schema }).constructor;
}

/** Returns the keys of a class with `@ValidateNested()`. */
function nestedKeysOf(type: Schema): string[] {
  const rules = getMetadataStorage().getTargetValidationMetadatas(type, '', false, false);
  return rules.filter((rule) => rule.type === 'nestedValidation').map(({ propertyName }) => propertyName);
}
