import { isPlainObject } from '../common/json.js';

/** The arguments that a model passes to an orchestrator used as a tool. */
export interface OrchestratorToolInput {
  /** The message. */
  readonly input: string;
}

/** @inline */
type Validated =
  { readonly value: OrchestratorToolInput } | { readonly issues: readonly { readonly message: string }[] };

const JSON_SCHEMA = {
  type: 'object',
  properties: { input: { type: 'string', description: 'What to say or ask, complete in itself.' } },
  required: ['input'],
  additionalProperties: false,
} as const;

/**
 * A plain JSON schema. It also implements the Standard Schema (standardschema.dev) through a non-enumerable property,
 * for callers such as the AI SDK.
 */
export type ToolInputSchema = typeof JSON_SCHEMA & {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly types?: { readonly input: OrchestratorToolInput; readonly output: OrchestratorToolInput };
    /** Returns `input` and drops all other properties. */
    readonly validate: (value: unknown) => Validated;
    readonly jsonSchema: {
      /** Returns a copy of the schema. */
      readonly input: () => Record<string, unknown>;
      /** Returns the same schema, because validation transforms nothing. */
      readonly output: () => Record<string, unknown>;
    };
  };
};

const copy = (): Record<string, unknown> => structuredClone(JSON_SCHEMA);

export const TOOL_INPUT_SCHEMA: ToolInputSchema = Object.defineProperty(copy() as ToolInputSchema, '~standard', {
  value: {
    version: 1,
    vendor: 'nestjs-agent-sessions',
    validate: toToolInput,
    jsonSchema: { input: copy, output: copy },
  } satisfies ToolInputSchema['~standard'],
});

/** Takes only the message. Other arguments of the model, such as a session, are dropped. */
export function toToolInput(args: unknown): Validated {
  if (isPlainObject(args) && typeof args.input === 'string') return { value: { input: args.input } };
  return { issues: [{ message: 'must be an object with an `input` string.' }] };
}
