import { type Checkpoint } from '../ledger/checkpoint.js';
import { sha256 } from '../common/digests.js';
import { shapeOf } from '../conversation/history-window.js';
import { type OrchestratorDefinition } from './orchestrator.js';
import { schemaShape } from './state-schema.js';

/** The structure of an orchestrator, without its code and the sizes of its windows (BOT-22). */
export interface OrchestratorShape extends Pick<
  OrchestratorDefinition,
  'name' | 'routing' | 'historyWindow' | 'iterate' | 'maxIterations' | 'initialIntent' | 'stateSchema'
> {
  readonly intents: ReadonlyMap<string, unknown>;
  readonly evaluate?: unknown;
}

/** Returns SHA-256 over a canonical form, which does not depend on the order of intents or on the locale. */
export function signatureOf(shape: OrchestratorShape): string {
  return signatureWith(shape, intentsOf(shape), shape.routing);
}

export function intentsOf({ intents }: Pick<OrchestratorShape, 'intents'>): readonly string[] {
  return [...intents.keys()];
}

/** Returns intents of a checkpoint that the orchestrator does not have: they were removed or renamed. */
export function missingIntents(
  { intents: known }: Pick<OrchestratorShape, 'intents'>,
  { intents = [] }: Pick<Checkpoint, 'intents'>,
): readonly string[] {
  return intents.filter((intent) => !known.has(intent));
}

/** Returns true if the checkpoint was written by this structure, or by this structure with fewer intents (FIX-17). */
export function isExtended(
  shape: OrchestratorShape & Pick<OrchestratorDefinition, 'signature'>,
  { signature, intents }: Pick<Checkpoint, 'signature' | 'intents'>,
): boolean {
  if (signature === shape.signature) return true;
  if (!intents || missingIntents(shape, { intents }).length > 0) return false;
  // A second intent requires a route or router, so the change of the routing belongs to the added intent.
  const hadOne = intents.length === 1 && shape.intents.size > 1;
  const routings = hadOne ? ([shape.routing, 'single'] as const) : [shape.routing];
  return routings.some((routing) => signatureWith(shape, intents, routing) === signature);
}

/**
 * Returns true if the same structure with more intents wrote the checkpoint (FIX-84): newer code of the same version, or
 * code from before intents were removed.
 */
export function isOutgrown(
  shape: OrchestratorShape & Pick<OrchestratorDefinition, 'signature'>,
  checkpoint: Pick<Checkpoint, 'signature' | 'intents'>,
): boolean {
  const { signature, intents = [] } = checkpoint;
  const known = intentsOf(shape);
  if (intents.length <= known.length || !known.every((intent) => intents.includes(intent))) return false;
  // The structure with more intents must have had a route or a router.
  const routings = known.length === 1 ? (['route', 'router'] as const) : [shape.routing];
  return routings.some((routing) => signatureWith(shape, intents, routing) === signature);
}

function signatureWith(
  shape: OrchestratorShape,
  intents: readonly string[],
  routing: OrchestratorShape['routing'],
): string {
  const { name, historyWindow, iterate, maxIterations, initialIntent = null, evaluate, stateSchema } = shape;
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
    windows: [historyWindow.router, historyWindow.agents].map(shapeOf),
  });
  return sha256(canonical);
}
