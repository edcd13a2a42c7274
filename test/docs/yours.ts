/**
 * Names that readers have in their applications. Code blocks use them without a declaration. This file is only for the
 * compiler, and only for names that need no explanation on the pages.
 */
import { type CanActivate, type ExecutionContext, type Type } from '@nestjs/common';
import { type StopCondition, type ToolSet } from 'ai';
import { type Redis } from 'ioredis';
import {
  type EventResponse,
  type JsonObject,
  type JsonValue,
  type MemoryPort,
  type OrchestratorHandle,
  type Principal,
  type Session,
  type SessionRecords,
  type SessionsAdapter,
  type SessionStateService,
  type SessionStore,
  type OrchestrationEvents,
  type OrchestrationStateManager,
  type OrchestratorEvents,
  type StepPlanConfig,
  type Summarizer,
  type TokenCountsInput,
  type TurnContext,
  type TurnService,
} from 'nestjs-agent-sessions';
import { type DataSource } from 'typeorm';
import { type ZodType } from 'zod';
import { type Models } from '../../sample/04-model-agent/models.js';

export { openai } from '@ai-sdk/openai';
export { type LanguageModelV3 } from '@ai-sdk/provider';
export { Chat } from '@ai-sdk/react';
export {
  type DefaultChatTransport,
  extractReasoningMiddleware,
  generateText,
  lastAssistantMessageIsCompleteWithToolCalls,
  Output,
  stepCountIs,
  streamText,
  tool,
  ToolLoopAgent,
  type ToolSet,
  type UIMessage,
  wrapLanguageModel,
} from 'ai';
export { z } from 'zod';
export { Readable } from 'node:stream';
export { filter } from 'rxjs';
export { type Socket } from 'socket.io';
export { default as request } from 'supertest';
export { DataSource, type DataSourceOptions } from 'typeorm';
export { jsonFileAdapter } from '../../sample/02-json-file-store/json-file-adapter.js';
export { AirlineAgent } from '../../sample/03-tool-sequences/airline.agent.js';
export { AirlineModel } from '../../sample/03-tool-sequences/airline-model.js';
export { AirlineTools } from '../../sample/03-tool-sequences/airline-tools.js';
export { durable } from '../../sample/04-model-agent/durable-model.js';
export { toMessages, toModelMessages, toUsage } from '../../sample/04-model-agent/messages.js';
export { ModelRouter } from '../../sample/04-model-agent/model-router.js';
export { turnTool } from '../../sample/04-model-agent/turn-tool.js';

/** A value as a page shows it. Omitted properties may exist. */
export type Shown<T> = T extends readonly (infer Item)[]
  ? readonly Shown<Item>[]
  : T extends (...args: never[]) => unknown
    ? T
    : T extends object
      ? { [Key in keyof T]?: Shown<T[Key]> }
      : T;

/** The members of the class around a block of members. */
export interface Your {
  readonly audit: { write(entry: object): void };
  readonly desk: OrchestratorHandle<Desk>;
  readonly forecast: { of(place: string, seen: unknown): Promise<{ readonly text: string }> };
  readonly models: Models;
  readonly model: { stream(text: string, options: { signal: AbortSignal }): AsyncIterable<string> };
  readonly orders: OrdersService;
  readonly payments: typeof payments;
  readonly researcher: OrchestratorHandle;
  readonly reservations: { cancel(sessionId: string): Promise<void> };
  readonly sessions: SessionStore;
  readonly state: SessionStateService;
  readonly turns: TurnService;
  count(...what: unknown[]): void;
  notify(userId: string): void;
}

// Your application
export declare class AppModule {}
export declare class AuthModule {}
export declare class HealthModule {}
export declare class AuthGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean;
}
export declare class AdminGuard extends AuthGuard {}
export declare class AuthService {
  verify(token: unknown): Promise<Principal>;
}
export declare class User {
  id: string;
  workspaceId?: string;
}
export declare function principalOf(context: ExecutionContext): Principal;
export declare function verify(credentials: unknown): Promise<Principal | null>;
export declare function cookieParser(secret?: string): (request: unknown, response: unknown, next: () => void) => void;
export declare function token(): string;
export declare function count(...what: unknown[]): void;
export declare function log(...what: unknown[]): void;

// Your agent
export interface Desk {
  orderId?: string;
  orders?: string[];
}
export declare class DeskState implements Desk {
  orders?: string[];
}
export declare class SupportDesk {}
export declare class ShopBot {}
export declare class ShopAssistant {}
export declare const CHAT_MODEL: symbol;
export declare class ChatController {}
export declare class OrdersService {
  find(id?: string, options?: { signal: AbortSignal }): Promise<{ readonly id: string; readonly status: string }>;
  refund(id: string, key: string): string;
}
export declare class CheapModel {
  complete(prompt: string, messages: readonly unknown[]): Promise<{ text: string; usage: { totalTokens: number } }>;
}
export declare class VectorStore {
  search(scope: string, text: string): Promise<JsonValue[]>;
  add(scope: string, turnId: string, text: unknown): Promise<void>;
}
export declare const VectorMemory: Type<MemoryPort>;
export declare class CartService {}
export declare class CartRepository {
  count(sessionId: string): Promise<number>;
  delete(sessionId: string): Promise<number>;
  deleteAll(): Promise<number>;
  items(sessionId: string): Promise<{ article: string; amount: number }[]>;
}
export declare class ShopSearch {
  find(query: string): Promise<JsonObject>;
}
export interface Cart {
  items: string[];
}
export declare class Talk {}
export declare class Order {}

// Data of requests
export declare class SayDto {
  text: string;
}
export declare class ApprovalDto {
  granted: boolean;
}
export declare class PageDto {
  before?: number;
}
export declare class ForkDto {
  atTurn: number;
}

// Injected or received values
export declare const desk: OrchestratorHandle<Desk>;
export declare const handle: OrchestratorHandle;
export declare const sessions: SessionStore;
export declare const turns: TurnService;
export declare const state: SessionStateService;
export declare const records: SessionRecords;
export declare const states: OrchestrationStateManager;
export declare const events: OrchestrationEvents;
export declare const orchestratorEvents: OrchestratorEvents;
export declare const turn: TurnContext<Desk>;
export declare const session: Session;
export declare const sessionId: string;
export declare const turnId: string;
export declare const orderId: string;
export declare const text: string;
export declare const next: string;

// Your agent's tools
export declare const call: { readonly id: string; readonly arguments: JsonObject };
export declare class FlightQuery {
  from: string;
}
export declare const flights: {
  search(query: JsonObject, options: { key: string; signal: AbortSignal }): Promise<string[]>;
};
export declare const orders: OrdersService;
export declare const payments: { refund(orderId: string, options: { idempotencyKey: string }): Promise<void> };
export declare const printer: { print(orderId: string): Promise<void> };
export declare const model: { ask(prompt: string): Promise<{ text: string; usage: TokenCountsInput }> };
export declare const prompt: string;
export declare const schema: ZodType<{ orderId: string }>;
export declare const findOrder: ToolSet[string];
export declare const hasFailed: StopCondition<ToolSet>;
export declare function tokensOf(text: string): number;

// Your infrastructure
export declare const adapter: SessionsAdapter;
export declare const dataSource: DataSource;
export declare const client: Redis;
export declare const url: string;
export declare const fake: OrdersService;
export declare const steps: StepPlanConfig['steps'];
export declare const summarize: Summarizer;
export declare const archive: { put(...what: unknown[]): Promise<void> };
export declare function startMyServer(): Promise<string>;
export declare function myAdapter(options: { url: string }): SessionsAdapter;
/** From @nestjs/typeorm, which this package does not need. */
export declare class TypeOrmModule {}
export declare function getDataSourceToken(name?: string): string;

/** From express, which this package does not need. */
export interface Response extends EventResponse {
  cookie(name: string, value: string, options: object): void;
  setHeader(name: string, value: string): void;
}

// In the browser
export declare const id: string;
export declare function show(text: string): void;
export declare function clear(): void;
export declare function finish(turn: object): void;

/** Searches for what a text asks. */
export declare function search(text: string): Promise<string>;
export declare const MODELS: symbol;
