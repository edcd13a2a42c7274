/**
 * A part of a UI message: text, reasoning, a file, a source, a tool call in any state, data, or the start of a step.
 * `type` decides which other fields it has; all of them are JSON.
 */
export interface UIPart {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** A message as chat front ends show it. The `UIMessage` types of ai 6 and 7 are assignable to it. */
export interface AnyUIMessage {
  readonly id: string;
  readonly role: 'system' | 'user' | 'assistant';
  readonly metadata?: unknown;
  readonly parts: readonly UIPart[];
}

/**
 * A chunk of the UI message stream. `type` decides which other fields it has; all of them are JSON. The
 * `UIMessageChunk` types of ai 6 and 7 are assignable to it.
 */
export interface UIChunk {
  readonly type: string;
  readonly [field: string]: unknown;
}
