import { getMetadataStorage } from 'class-validator';
import { validateSchema } from '../common/check-schema.js';
import { type JsonObject } from '../common/json.js';
import { InvalidInputError } from '../common/sessions.error.js';
import { wrongState } from './orchestrator.errors.js';

/** The Standard Schema, version 1, which zod, valibot, ArkType and other libraries implement. */
export interface StandardSchema {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    /** Returns the validated value, or the issues. */
    readonly validate: (value: unknown) => SchemaResult | Promise<SchemaResult>;
  };
}

/** @inline */
interface SchemaResult {
  readonly issues?:
    | readonly {
        readonly message: string;
        readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
      }[]
    | undefined;
}

/** A class with class-validator's decorators, which may nest other classes (FIX-73), or a Standard Schema. */
export type StateSchema = (new () => object) | StandardSchema;

export function isStateSchema(value: unknown): value is StateSchema {
  if (typeof value === 'function' && !('~standard' in value)) return true;
  const schema = value as Partial<StandardSchema> | null | undefined;
  return typeof schema?.['~standard']?.validate === 'function';
}

/** Validates the state without changing it. @throws HandlerError (`STATE_SCHEMA`) with the first invalid value */
export async function assertState(orchestrator: string, schema: StateSchema, state: JsonObject): Promise<void> {
  const problem = await problemIn(schema, state, 'state');
  if (problem) throw wrongState(orchestrator, problem.path, problem.rule);
}

/** Validates the input of a tool without changing it. @throws InvalidInputError with the first invalid value */
export async function assertToolInput(schema: StateSchema, input: unknown, path: string): Promise<void> {
  const problem = await problemIn(schema, input, path);
  if (problem) throw new InvalidInputError(problem.path, problem.rule);
}

/** Returns the path and the rule of the first invalid value, or `null`. */
async function problemIn(
  schema: StateSchema,
  value: unknown,
  path: string,
): Promise<{ readonly path: string; readonly rule: string } | null> {
  if (!isStandard(schema)) {
    const checked = await validateSchema(schema, value, path);
    return 'problem' in checked ? checked.problem : null;
  }
  const { issues = [] } = await schema['~standard'].validate(structuredClone(value));
  const [issue] = issues;
  if (!issue) return null;
  const keys = (issue.path ?? []).map((part) => String(typeof part === 'object' ? part.key : part));
  return { path: [path, ...keys].join('.'), rule: issue.message };
}

/**
 * Returns the part of a schema that goes into the signature: the rules of a class, or the vendor of a Standard Schema.
 */
export function schemaShape(schema: StateSchema | undefined): unknown {
  if (schema === undefined) return null;
  if (isStandard(schema)) return { vendor: schema['~standard'].vendor };
  const rules = getMetadataStorage().getTargetValidationMetadatas(schema, '', false, false);
  return rules.map(({ propertyName, type, name }) => `${propertyName} ${name ?? type}`).sort();
}

function isStandard(schema: StateSchema): schema is StandardSchema {
  return '~standard' in schema;
}
