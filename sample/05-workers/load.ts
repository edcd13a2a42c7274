/** Sends turns to random sessions, draws their lanes, and verifies the result. See the README in this folder. */
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import logUpdate from 'log-update';
import { Killer } from './killer.js';
import { Lane } from './lane.js';
import { draw, LEGEND } from './lanes-view.js';

const POLL_MS = 100;
const STUCK_AFTER_MS = 60_000;

const { values } = parseArgs({
  options: {
    sessions: { type: 'string', default: '8' },
    turns: { type: 'string', default: '40' },
    kill: { type: 'boolean', default: false },
    url: { type: 'string', default: 'http://localhost:3000' },
  },
});
const { url, kill } = values;
const [sessions, turns] = [toCount('--sessions', values.sessions), toCount('--turns', values.turns)];
if (kill && !['localhost', '127.0.0.1', '[::1]'].includes(new URL(url).hostname)) {
  throw new Error('--kill kills processes of this machine, so --url must be of this machine too.');
}

const lanes: Lane[] = [];
for (let n = 1; n <= sessions; n += 1) lanes.push(await Lane.open(url, `user-${n}`));
const killer = new Killer(kill);
await run();
const problems = await Promise.all(lanes.map(async (lane) => ({ lane, problem: await lane.verify() })));
report();

/** Runs until all turns are sent and settled. @throws if no turn settles for a minute */
async function run(): Promise<void> {
  let [sent, settled, changedAt] = [0, 0, performance.now()];
  while (sent < turns || !lanes.every(({ isIdle }) => isIdle)) {
    // Send in bursts, so that turns queue up.
    for (let burst = Math.floor(Math.random() * 4); burst > 0 && sent < turns; burst -= 1) {
      sent += 1;
      await lanes[Math.floor(Math.random() * sessions)].say(`message ${sent}`);
    }
    await Promise.all(lanes.map((lane) => lane.refresh()));
    killer.update(lanes);
    if (process.stdout.isTTY) logUpdate(picture());
    const now = countSettled();
    if (now > settled) [settled, changedAt] = [now, performance.now()];
    if (performance.now() - changedAt > STUCK_AFTER_MS) throw new Error('Nothing has settled for a minute.');
    await delay(POLL_MS);
  }
}

function report(): void {
  if (process.stdout.isTTY) logUpdate.clear();
  console.log(picture());
  const wrong = problems.filter(({ problem }) => problem !== null);
  for (const { lane, problem } of wrong) console.error(`${lane.name}: ${problem}`);
  if (wrong.length > 0) process.exitCode = 1;
  else console.log('Verified: every turn of every session has settled once, in order.');
}

function picture(): string {
  const { kills, takeOvers } = killer;
  const slowest = (Math.max(0, ...takeOvers) / 1000).toFixed(1);
  const killed = kills > 0 ? `; ${kills} kills, ${takeOvers.length} lanes went on within ${slowest} s` : '';
  return `${draw(lanes)}\n${LEGEND}\n${countSettled()} of ${turns} turns settled${killed}`;
}

function countSettled(): number {
  return lanes.reduce((sum, lane) => sum + lane.settled, 0);
}

function toCount(option: string, text: string): number {
  if (!/^[1-9]\d{0,5}$/.test(text)) throw new Error(`${option} is ${text}; it must be a whole number of 1 or more.`);
  return Number(text);
}
