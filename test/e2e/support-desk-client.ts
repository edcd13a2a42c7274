import { type ConversationMessage, type Session, type TurnResult } from 'nestjs-agent-sessions';
import { type Answer, type AskOptions, type SampleProcess } from '../support/sample-process.js';

/** What `GET /turns/:id` of the support desk answers. */
export interface TurnView {
  readonly id: string;
  readonly sessionId: string;
  readonly status: string;
  readonly turnIndex?: number;
  readonly reply: string | null;
  readonly acceptedAt: string;
  readonly settledAt?: string;
}

/** A user of the support desk, with a session of their own. */
export class Customer {
  private constructor(
    private readonly sample: SampleProcess,
    readonly userId: string,
    readonly sessionId: string,
  ) {}

  static async arrive(sample: SampleProcess, userId = 'ann'): Promise<Customer> {
    const { status, body } = await sample.ask('/sessions', { method: 'POST', headers: { 'x-user-id': userId } });
    if (status !== 201) throw new Error(`No session: ${status} ${JSON.stringify(body)}`);
    return new Customer(sample, userId, (body as Session).id);
  }

  /** The same user and session at another process. */
  at(sample: SampleProcess): Customer {
    return new Customer(sample, this.userId, this.sessionId);
  }

  get headers(): Record<string, string> {
    return { 'x-user-id': this.userId, 'x-session-id': this.sessionId };
  }

  ask(path: string, options: AskOptions = {}): Promise<Answer> {
    return this.sample.ask(path, { ...options, headers: { ...this.headers, ...options.headers } });
  }

  trySay(input: unknown, headers: Record<string, string> = {}): Promise<Answer> {
    return this.ask('/turns', { method: 'POST', body: { input }, headers });
  }

  /** @throws unless the turn settled well */
  async say(input: string, headers: Record<string, string> = {}): Promise<TurnResult> {
    const { status, body } = await this.trySay(input, headers);
    if (status !== 201) throw new Error(`No answer: ${status} ${JSON.stringify(body)}`);
    return body as TurnResult;
  }

  async session(): Promise<Session> {
    return (await this.ask('/session')).body as Session;
  }

  async messages(): Promise<ConversationMessage[]> {
    return (await this.ask('/messages?limit=500')).body as ConversationMessage[];
  }

  async turn(id: string): Promise<TurnView> {
    return (await this.ask(`/turns/${id}`)).body as TurnView;
  }
}
