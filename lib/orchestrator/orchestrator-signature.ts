import { sha256 } from '../common/sha-256.js';
import { schemaShape, type StateSchema } from './state-schema.js';

/** What an orchestrator's signature is made of: its structure, neither its code nor the size of its windows (BOT-22). */
export interface OrchestratorShape {
  readonly name: string;
  readonly intents: readonly string[];
  readonly routing: 'route' | 'router' | 'single';
  /** Of the router's and the agents' windows: their kinds. */
  readonly windows: readonly string[];
  readonly iterate: boolean;
  readonly maxIterations: number;
  readonly initialIntent?: string;
  readonly evaluate?: unknown;
  readonly stateSchema: StateSchema | undefined;
}

/** SHA-256 over a canonical form: independent of the order of intents and of the locale. */
export function signatureOf(shape: OrchestratorShape): string {
  const {
    name,
    intents,
    routing,
    windows,
    iterate,
    maxIterations,
    initialIntent = null,
    evaluate,
    stateSchema,
  } = shape;
  const canonical = JSON.stringify({
    evaluate: evaluate !== undefined,
    initialIntent,
    // Array.prototype.sort without a comparison orders by code unit.
    intents: [...intents].sort(),
    iterate,
    maxIterations,
    name,
    routing,
    state: schemaShape(stateSchema),
    windows,
  });
  return sha256(canonical);
}
