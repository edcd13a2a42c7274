import { createRequire } from 'node:module';
import { type Redis } from 'ioredis';
import { BENCH } from './chart-library.js';

/** The parts of groupmq that the benchmarks use. */
export interface Groupmq {
  readonly Queue: new <T>(options: { redis: Redis; namespace: string }) => GroupmqQueue<T>;
  readonly Worker: new <T>(options: {
    queue: GroupmqQueue<T>;
    handler: (job: GroupmqJob<T>) => Promise<unknown>;
    concurrency: number;
  }) => GroupmqWorker<T>;
}

export interface GroupmqQueue<T> {
  add(options: { groupId: string; data: T }): Promise<unknown>;
  getJobCounts(): Promise<Readonly<Record<string, number>>>;
  close(): Promise<void>;
}

export interface GroupmqWorker<T> {
  on(event: 'completed', listener: (job: GroupmqJob<T>) => void): unknown;
  on(event: 'failed', listener: (job: GroupmqJob<T>) => void): unknown;
  on(event: 'error', listener: (error: Error) => void): unknown;
  run(): Promise<void>;
  close(): Promise<void>;
}

interface GroupmqJob<T> {
  readonly id: string;
  readonly data: T;
}

/** Loads groupmq, which is installed in `bench/` only. */
export function loadGroupmq(): Groupmq {
  return createRequire(BENCH)('groupmq') as Groupmq;
}
