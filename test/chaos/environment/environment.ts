import { createOrchestrationStateManager, createSessionStore } from 'nestjs-agent-sessions';
import { TcpProxy } from '../../support/tcp-proxy.js';
import { type ActorSetup } from '../actor/actor-setup.js';
import { ORCHESTRATOR } from '../actor/chaos.orchestrator.js';
import { type Load } from '../actor/load.js';
import { TOKENS_BEFORE } from '../actor/plan.js';
import { HistoryFile } from '../history/history-file.js';
import { type Happening } from '../history/history.js';
import { type Random } from '../random.js';
import { ActorProcess } from './actor-process.js';
import { Place, type StoreName } from './place.js';

/** Short, so that many leases lapse in a run; the defaults are five times as long. */
export const LEASE_MS = 2000;
const SESSIONS = 12;
const CLIENTS = 12;

/** The options of an environment. */
export interface EnvironmentOptions {
  readonly load: Pick<Load, 'failure' | 'wait' | 'cancel' | 'whenBusy'>;
  /** True if one message kills each process that runs it. */
  readonly culprit?: boolean;
  /** Number of lost attempts after which a turn fails. Default: 1000, because faults end attempts of any turn. */
  readonly maxLost?: number;
  /** True if each actor has its own proxies to the servers. */
  readonly proxies?: boolean;
  /** Returns the version of the orchestrator for an actor's name. Default: `1.0.0`. */
  readonly version?: (actor: string) => string;
  /** Returns the environment variables of an actor's process, for its name. */
  readonly env?: (actor: string) => Readonly<Record<string, string>>;
}

/** The proxies of an actor. */
export interface Wires {
  readonly store: TcpProxy;
  readonly queue: TcpProxy;
}

/** A store, the processes that use it, and the faults that a scenario can cause. */
export class Environment {
  readonly workers: ActorProcess[] = [];
  /** The processes that submit; on SQLite the only worker also submits. */
  readonly fronts: ActorProcess[] = [];
  readonly wires = new Map<ActorProcess, Wires>();
  /** Unexpected failures. */
  readonly failures: Error[] = [];
  /** The last time that a handler killed its process, or that process restarted, by `performance.now()`. */
  disturbedAt = 0;
  private readonly history: HistoryFile;

  private constructor(
    readonly place: Place,
    readonly folder: string,
    private readonly options: EnvironmentOptions,
    private readonly random: Random,
    private readonly interrupted: AbortSignal,
  ) {
    this.history = new HistoryFile(folder, 'driver');
    interrupted.addEventListener('abort', this.end);
  }

  /** @param interrupted kills all actors permanently */
  static async open(
    store: StoreName,
    folder: string,
    options: EnvironmentOptions,
    random: Random,
    interrupted: AbortSignal,
  ): Promise<Environment> {
    const environment = new Environment(await Place.open(store, folder), folder, options, random, interrupted);
    try {
      await environment.createSessions();
      await environment.addActors();
    } catch (error) {
      await environment.close();
      throw error;
    }
    return environment;
  }

  get actors(): readonly ActorProcess[] {
    return [...new Set([...this.workers, ...this.fronts])];
  }

  get hasCulprit(): boolean {
    return this.options.culprit ?? false;
  }

  get maxLost(): number {
    return this.options.maxLost ?? 1000;
  }

  /** True if there is one actor: without it no process reaches the store. */
  private get isAlone(): boolean {
    return this.actors.length === 1;
  }

  get sessions(): readonly string[] {
    return Array.from({ length: SESSIONS }, (_, index) => `session-${index}`);
  }

  note(happening: Happening): void {
    this.history.note(happening);
  }

  /** Records a fault in the history. */
  fault(fault: string, target: string): void {
    this.note({ what: 'fault', fault, target });
  }

  async kill(actor: ActorProcess): Promise<void> {
    this.fault('kill', actor.process);
    await actor.kill();
  }

  freeze(actor: ActorProcess): void {
    this.fault('stop', actor.process);
    actor.freeze();
  }

  thaw(actor: ActorProcess): void {
    actor.thaw();
    this.fault('continue', actor.process);
  }

  /** Stops the server with `down` and restarts it after `pause`. */
  async outage(fault: string, down: () => Promise<void>, pause: () => Promise<void>): Promise<void> {
    const { server, name } = this.place;
    if (!server) throw new Error(`${name} has no server.`);
    this.note({ what: 'outage' });
    this.fault(fault, name);
    await down();
    await pause();
    await server.start();
    this.note({ what: 'recovered' });
  }

  /** Tells all clients to stop submitting. @returns true once none submits */
  silence(): boolean {
    return this.fronts.map((front) => front.silence()).every((quiet) => quiet);
  }

  /** Stops all actors gracefully, as in a deployment. */
  async stop(): Promise<void> {
    for (const actor of this.actors) this.fault('terminate', actor.process);
    await Promise.all(this.actors.map((actor) => actor.stop()));
  }

  async close(): Promise<void> {
    this.interrupted.removeEventListener('abort', this.end);
    await Promise.all(this.actors.map((actor) => actor.end()));
    await Promise.all([...this.wires.values()].flatMap(({ store, queue }) => [store.stop(), queue.stop()]));
    await this.place.close();
  }

  private readonly end = (): void => {
    for (const actor of this.actors) void actor.end();
  };

  private async createSessions(): Promise<void> {
    const adapter = this.place.openStore();
    await adapter.init?.();
    const sessions = createSessionStore({ adapter: adapter.sessions });
    const states = createOrchestrationStateManager({ storageProvider: adapter.state, cleanup: { enabled: false } });
    const agent = states.of(ORCHESTRATOR);
    for (const id of this.sessions) {
      await sessions.create({ id, userId: 'ann' });
      for (let token = 0; token < TOKENS_BEFORE; token += 1) await agent.addTokenUsage(id, { promptTokens: 1 });
    }
    await adapter.close?.();
  }

  private async addActors(): Promise<void> {
    if (this.place.name === 'sqlite') {
      const both = await this.actor('both-1', 'both');
      this.workers.push(both);
      this.fronts.push(both);
    } else {
      for (const name of ['worker-1', 'worker-2', 'worker-3']) this.workers.push(await this.actor(name, 'work'));
      for (const name of ['front-1', 'front-2']) this.fronts.push(await this.actor(name, 'submit'));
    }
    await Promise.all(this.actors.map((actor) => actor.start()));
  }

  private async actor(name: string, role: ActorSetup['role']): Promise<ActorProcess> {
    const { server } = this.place;
    const wires =
      this.options.proxies && server
        ? { store: await TcpProxy.start(server.url), queue: await TcpProxy.start(server.url) }
        : undefined;
    const setup = (process: string): ActorSetup => ({
      process,
      folder: this.folder,
      role,
      store: this.place.storeOptions(wires?.store.url),
      queue: this.place.queuePlace(wires?.queue.url),
      version: this.options.version?.(name) ?? '1.0.0',
      leaseMs: LEASE_MS,
      maxLost: this.maxLost,
      ...(role === 'work' ? {} : { load: this.load(process) }),
    });
    const env = this.options.env?.(name) ?? {};
    const actor = new ActorProcess(name, this.folder, setup, env, {
      failed: (error) => this.failures.push(error),
      crashed: () => this.disturbed('outage'),
      restarted: () => this.disturbed('recovered'),
    });
    if (wires) this.wires.set(actor, wires);
    return actor;
  }

  private disturbed(what: 'outage' | 'recovered'): void {
    this.disturbedAt = performance.now();
    if (this.isAlone) this.note({ what });
  }

  private load(process: string): Load {
    const seed = this.random.int(-2_147_483_648, 2_147_483_647);
    const clients = this.place.name === 'sqlite' ? CLIENTS : CLIENTS / 2;
    // In the first process of the first front.
    const culprit = this.options.culprit && process.endsWith('-1.1') ? { culprit: this.sessions[0] } : {};
    return { ...this.options.load, seed, clients, sessions: this.sessions, ...culprit };
  }
}
