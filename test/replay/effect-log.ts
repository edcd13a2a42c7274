import { appendFileSync, existsSync, readFileSync } from 'node:fs';

/**
 * A log of step effects outside the store: one line per execution, written immediately, so that it survives a
 * SIGKILL. It shows whether a step ran again although its result was stored.
 */
export class EffectLog {
  constructor(private readonly file: string) {}

  note(turnId: string, step: number): void {
    appendFileSync(this.file, `${turnId} ${step}\n`);
  }

  /** Returns the executions of every turn's steps in order. */
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
