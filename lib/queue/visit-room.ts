/** Room for so many visits at once. Whoever finds none waits for it, in order. */
export class VisitRoom {
  private taken = 0;
  private readonly waiting = new Set<() => void>();

  constructor(private readonly size: number) {}

  /** Whether somebody waits for it. */
  get isWanted(): boolean {
    return this.waiting.size > 0;
  }

  /** @returns false when there is none */
  tryEnter(): boolean {
    if (this.taken >= this.size) return false;
    this.taken += 1;
    return true;
  }

  /** @returns false when there was no room within the time */
  async enter(patienceMs: number): Promise<boolean> {
    if (this.tryEnter()) return true;
    return new Promise((resolve) => {
      const settle = (entered: boolean): void => {
        clearTimeout(timer);
        withdraw();
        resolve(entered);
      };
      const withdraw = this.queueUp(() => settle(true));
      const timer = setTimeout(() => settle(false), patienceMs);
    });
  }

  /**
   * Waits without a limit.
   * @param entered is called once
   * @returns stops waiting
   */
  queueUp(entered: () => void): () => void {
    const enter = (): void => {
      this.waiting.delete(enter);
      entered();
    };
    this.waiting.add(enter);
    return () => void this.waiting.delete(enter);
  }

  /** Whoever has waited longest has the room from now on. */
  leave(): void {
    const [next] = this.waiting;
    if (next) next();
    else this.taken -= 1;
  }
}
