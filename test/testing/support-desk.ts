import { Injectable } from '@nestjs/common';
import { Intent, Orchestrator, reply, Route, type TurnContext, type TurnOutcome } from 'nestjs-agent-sessions';

interface Order {
  readonly id: string;
  readonly status: string;
}

/** A service of the application: a shop with orders in another system. */
@Injectable()
export class OrdersService {
  async find(_id: string): Promise<Order> {
    throw new Error('Tests must not call the shop.');
  }
}

interface Desk {
  orderId?: string;
}

/** The application's orchestrator. */
@Orchestrator<Desk>({ name: 'support-desk', version: '3', initialState: () => ({}) })
export class SupportDesk {
  constructor(private readonly orders: OrdersService) {}

  @Route()
  route(turn: TurnContext<Desk>): string {
    return /refund/i.test(turn.input.text) ? 'refund' : 'status';
  }

  @Intent()
  async status(turn: TurnContext<Desk>): Promise<TurnOutcome<Desk>> {
    const [orderId = turn.state.orderId ?? ''] = /\d+/.exec(turn.input.text) ?? [];
    const order = await turn.step('load order', () => this.orders.find(orderId));
    return reply(`Order ${order.id} is ${order.status}.`, { state: { orderId } });
  }

  @Intent()
  refund(): string {
    return 'Which order is it about?';
  }
}

/** Every order is shipped. */
export const fake: OrdersService = { find: async (id) => ({ id, status: 'shipped' }) };
