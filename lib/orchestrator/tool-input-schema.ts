import { isPlainObject } from '../common/json.js';

/** What a model gives to an orchestrator that is its tool. */
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
 * A JSON schema, as it is. Out of sight of what serializes it, it is a Standard Schema too (standardschema.dev), so that those
 * who want one take it: the AI SDK does.
 */
export type ToolInputSchema = typeof JSON_SCHEMA & {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly types?: { readonly input: OrchestratorToolInput; readonly output: OrchestratorToolInput };
    /** Takes `input`, and leaves out whatever else a model sends. */
    readonly validate: (value: unknown) => Validated;
    readonly jsonSchema: {
      /** A copy of the schema. */
      readonly input: () => Record<string, unknown>;
      /** The same: nothing is transformed. */
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

/** Takes the message and nothing else: a model's other arguments, a session among them, are left out. */
export function toToolInput(args: unknown): Validated {
  if (isPlainObject(args) && typeof args.input === 'string') return { value: { input: args.input } };
  return { issues: [{ message: 'must be an object whose input is a text.' }] };
}
