import { createHash } from 'node:crypto';

/** What an orchestrator's signature is made of: its structure, neither its code nor the size of its windows (BOT-22). */
export interface OrchestratorShape {
  readonly name: string;
  readonly intents: readonly string[];
  readonly routing: 'route' | 'router' | 'single';
}

/** SHA-256 over a canonical form: independent of the order of intents and of the locale. */
export function signatureOf({ name, intents, routing }: OrchestratorShape): string {
  // Array.prototype.sort without a comparison orders by code unit.
  const canonical = JSON.stringify({ intents: [...intents].sort(), name, routing });
  return createHash('sha256').update(canonical).digest('hex');
}
