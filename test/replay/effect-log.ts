import { appendFileSync, existsSync, readFileSync } from 'node:fs';

/**
 * What steps did to the world outside the store: one line a run of a step, written at once, so that it outlives a
 * SIGKILL. It tells whether a step ran again although its result was stored.
 */
export class EffectLog {
  constructor(private readonly file: string) {}

  note(turnId: string, step: number): void {
    appendFileSync(this.file, `${turnId} ${step}\n`);
  }

  /** The runs of every turn's steps in the order in which they happened. */
  read(): Map<string, number[]> {
    const runs = new Map<string, number[]>();
    const lines = existsSync(this.file) ? readFileSync(this.file, 'utf8').trimEnd().split('\n') : [];
    for (const line of lines) {
      const [turnId, step] = line.split(' ');
      const ofTurn = runs.get(turnId) ?? [];
      ofTurn.push(Number(step));
      runs.set(turnId, ofTurn);
    }
    return runs;
  }
}
