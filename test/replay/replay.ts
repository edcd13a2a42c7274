import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { Actors } from './actors.js';
import { run } from './driver.js';
import { EffectLog } from './effect-log.js';
import { LaneWatch } from './lane-watch.js';
import { readRecords, RecordError, type RecordedConversation, turnsOf } from './record.js';
import { parseOptions, type ReplayOptions, USAGE } from './replay-options.js';
import { UsageError } from '../support/command-line.js';
import { attemptsRepeated, progressBar, summaryTable } from './report.js';
import { firstDifference, type ReplayedConversation } from './verify.js';
import { effectFile } from './worker-calls.js';
import { openPlace } from './replay-store.js';

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  const theirs = error instanceof UsageError || error instanceof RecordError;
  console.error(theirs ? error.message : error);
  if (error instanceof UsageError) console.error('See --help.');
  process.exitCode = theirs ? 2 : 1;
}

async function main(args: string[]): Promise<number> {
  const options = parseOptions(args);
  if (!options) {
    console.log(USAGE);
    return 0;
  }
  const records = readRecords(options.file).slice(0, options.sessions);
  const folder = mkdtempSync(join(tmpdir(), 'replay-'));
  const { store, queue, close } = await openPlace(options, folder);
  const { file, concurrency, workers } = options;
  const actors = new Actors({ file: resolve(file), folder, store, queue, concurrency }, workers);
  let equal = false;
  try {
    equal = await replay(records, options, actors, new EffectLog(join(folder, effectFile)));
  } finally {
    await actors.stop();
    await close();
    if (equal) rmSync(folder, { recursive: true });
    else console.error(`The files of the worker are in ${folder}`);
  }
  return equal ? 0 : 1;
}

async function replay(
  records: readonly RecordedConversation[],
  { killEvery }: ReplayOptions,
  actors: Actors,
  effectLog: EffectLog,
): Promise<boolean> {
  const turns = sum(records, (record) => turnsOf(record).length);
  await actors.ready();
  const lanes = new LaneWatch();
  const bar = progressBar(turns);
  const startedAt = performance.now();
  const submitted = await run(records, actors, {
    killEvery,
    lanes,
    onSettled: () => bar.increment(1, { kills: actors.kills }),
  }).finally(() => bar.stop());
  const seconds = (performance.now() - startedAt) / 1000;
  const waits = lanes.waits();

  const effects = effectLog.read();
  const replayed: ReplayedConversation[] = [];
  for (const record of records) {
    const stored = await actors.front.call('read', record.id);
    replayed.push({ record, stored, turnIds: submitted.get(record.id) ?? [], effects });
  }
  const difference = replayed.map(firstDifference).find((found) => found !== null);
  const stepRuns = sum([...effects.values()], (runs) => runs.length);
  const steps = sum([...effects.values()], (runs) => new Set(runs).size);
  const summary = summaryTable({
    sessions: records.length,
    turns,
    messages: sum(replayed, ({ stored }) => stored.messages.length),
    kills: actors.kills,
    restarts: actors.restarts,
    longestStopMs: lanes.longestMs,
    longestWaitMs: waits.longestMs,
    medianWaitMs: waits.medianMs,
    worstWaitRatio: lanes.worstRatio,
    attemptsRepeated: sum(replayed, ({ stored }) => attemptsRepeated(stored.turns)),
    stepsRepeated: stepRuns - steps,
    seconds,
    equal: difference === undefined,
  });
  console.log(summary);
  if (difference !== undefined) console.error(`FIRST DIFFERENCE: ${difference}`);
  return difference === undefined;
}

function sum<T>(items: readonly T[], count: (item: T) => number): number {
  return items.reduce((total, item) => total + count(item), 0);
}
