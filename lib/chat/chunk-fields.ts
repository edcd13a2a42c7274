import { type UIChunk, type UIPart } from './ui-message.js';

/** The fields of chunks that this folder reads, as the protocol defines them for some types of chunks. */
export interface ChunkFields extends UIChunk {
  readonly messageId?: string;
  readonly messageMetadata?: unknown;
  /** The id of a block of text or reasoning, or of a data part. */
  readonly id: string;
  readonly delta: string;
  readonly providerMetadata?: unknown;
  readonly toolCallId: string;
  readonly toolName: string;
  readonly inputTextDelta: string;
  readonly approvalId: string;
}

/** The fields of parts that this folder reads, as the protocol defines them for some types of parts. */
export interface PartFields extends UIPart {
  readonly id?: string;
  readonly text: string;
  /** The state: `streaming` or `done` for a block; one of those in the protocol for a tool call. */
  readonly state: string;
  readonly providerMetadata?: unknown;
  readonly toolCallId?: string;
  /** The input of a tool call as text, while it is incomplete. */
  readonly rawInput?: string;
  readonly approval?: { readonly id: string };
}

/** A block is a part whose text grows by deltas. */
export type BlockKind = 'text' | 'reasoning';

/** Returns the kind of block that a chunk starts, extends or ends; `undefined` for all other chunks. */
export function blockKindOf(type: string): BlockKind | undefined {
  const [, kind] = /^(text|reasoning)-(?:start|delta|end)$/.exec(type) ?? [];
  return kind as BlockKind | undefined;
}

/** Returns whether a chunk or a part is data of the application. */
export function isData({ type }: UIChunk | UIPart): boolean {
  return type.startsWith('data-');
}

/** Returns whether a part is `reasoning`, or `reasoning-file` of ai 7. */
export function isReasoning({ type }: { readonly type: string }): boolean {
  return type.startsWith('reasoning');
}

/** Returns the fields that have a value. */
export function defined<T extends object>(fields: T): T {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T;
}
