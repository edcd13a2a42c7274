import { type Random } from '../random.js';
import { TOOLS } from './plan.js';

/** The script of a handler, in its message. */
export interface Script {
  readonly steps: number;
  readonly stepMs: number;
  /** Number of events after each step. */
  readonly emits: number;
  /** Tools to use after the steps, one after the other. */
  readonly tools: readonly ToolScript[];
  /** Number of attempts that fail before one succeeds. */
  readonly failures: number;
  /** True if no attempt succeeds. */
  readonly fails: boolean;
  /** Maximum wait for a signal in milliseconds; `null` for no wait. */
  readonly waitMs: number | null;
  /** True if the handler stops when its signal is aborted. */
  readonly listens: boolean;
  /** Kills its process this many milliseconds after each start; `null` for never. */
  readonly crashAfterMs: number | null;
}

/** A use of a tool. */
export interface ToolScript {
  readonly tool: string;
  /** Number of tokens that it uses. */
  readonly tokens: number;
  /** True if it fails each time; the turn continues. */
  readonly fails: boolean;
}

export interface ScriptChances {
  readonly failure: number;
  readonly wait: number;
}

export function writeScript(random: Random, { failure, wait }: ScriptChances): Script {
  const troubled = random.chance(failure);
  const fails = troubled && random.chance(0.3);
  return {
    steps: random.int(0, 4),
    // Some take longer than the lease, so that it must be renewed.
    stepMs: random.chance(0.03) ? random.int(300, 1000) : random.int(0, 15),
    emits: random.int(0, 3),
    failures: troubled ? random.int(fails ? 0 : 1, 2) : 0,
    fails,
    waitMs: random.chance(wait) ? random.int(100, 2000) : null,
    listens: random.chance(0.5),
    tools: random.chance(0.7) ? Array.from({ length: random.int(1, 3) }, () => writeTool(random)) : [],
    crashAfterMs: null,
  };
}

/** The script of a turn that kills each process that runs it, immediately or after other turns have started. */
export function writeCulprit(random: Random): Script {
  const peaceful = writeScript(random, { failure: 0, wait: 0 });
  return { ...peaceful, crashAfterMs: random.int(0, 200) };
}

function writeTool(random: Random): ToolScript {
  return { tool: random.pick(TOOLS), tokens: random.int(1, 1000), fails: random.chance(0.1) };
}
