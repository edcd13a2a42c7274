import { createRequire } from 'node:module';
import { BENCH } from './chart-library.js';

/** The parts of the Agent Development Kit that the benchmarks use. */
export interface Adk {
  readonly DatabaseSessionService: new (uri: string) => AdkSessions;
  createEvent(event: Partial<AdkEvent>): AdkEvent;
}

export interface AdkSessions {
  /** Its own data source, which it never closes. */
  readonly orm?: { close(): Promise<void> };
  createSession(session: AdkKey): Promise<AdkSession>;
  getSession(
    session: AdkKey & { readonly config?: { readonly numRecentEvents: number } },
  ): Promise<AdkSession | undefined>;
  appendEvent(request: { readonly session: AdkSession; readonly event: AdkEvent }): Promise<AdkEvent>;
}

export interface AdkKey {
  readonly appName: string;
  readonly userId: string;
  readonly sessionId: string;
}

export interface AdkSession {
  readonly events: readonly AdkEvent[];
  readonly state: Readonly<Record<string, unknown>>;
}

export interface AdkEvent {
  readonly invocationId: string;
  readonly author: string;
  readonly timestamp: number;
  readonly content: { readonly role: string; readonly parts: readonly { readonly text: string }[] };
  readonly actions: { readonly stateDelta: Readonly<Record<string, unknown>> };
}

/** Loads the kit, which is installed in `bench/` only. */
export function loadAdk(): Adk {
  return createRequire(BENCH)('@google/adk') as Adk;
}
