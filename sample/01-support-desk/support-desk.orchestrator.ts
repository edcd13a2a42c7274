import { setTimeout as delay } from 'node:timers/promises';
import { Intent, Orchestrator, reply, Route, type TurnContext, type TurnOutcome } from 'nestjs-agent-sessions';
import { OrdersService } from './orders.service.js';

/** What the desk remembers of a conversation: small, plain JSON. */
export interface Desk {
  /** Set while a refund is being talked through. */
  refund?: { step: 'order' | 'reason' | 'confirm'; orderId?: string; reason?: string };
}

const POLICY =
  'You can send back what you bought within thirty days. We pay the money back within a week after the parcel has come, ' +
  'and the postage as well when something is wrong with it.';

type Turn = TurnContext<Desk>;
type Answer = TurnOutcome<Desk>;

/** A support agent without a model: rules decide, so that it runs anywhere. */
@Orchestrator<Desk>({ name: 'support-desk', version: '1', historyWindow: 20 })
export class SupportDesk {
  constructor(private readonly orders: OrdersService) {}

  @Route()
  route({ input, state }: Turn): string {
    if (state.refund) return 'refund';
    if (/\brefund|money back\b/i.test(input.text)) return 'refund';
    if (/\bwarehouse\b/i.test(input.text)) return 'warehouse';
    if (/\bpolicy\b/i.test(input.text)) return 'policy';
    if (/\border\b|\bwhere is\b/i.test(input.text)) return 'status';
    if (/^\s*(hi|hello|good (morning|day|evening))\b/i.test(input.text)) return 'greeting';
    if (/^\s*(bye|goodbye|that's all)\b/i.test(input.text)) return 'goodbye';
    return 'fallback';
  }

  @Intent()
  greeting({ turnIndex }: Turn): Answer {
    const hello = turnIndex === 0 ? 'Hello!' : 'Hello again!';
    return reply(`${hello} I can tell you where an order is, ask the warehouse, or arrange a refund.`);
  }

  @Intent()
  async status(turn: Turn): Promise<Answer> {
    const orderId = numberIn(turn.input.text);
    if (!orderId) return reply('Which order? Tell me its number, for example: where is order 7?');
    const order = await turn.step('find order', () => this.orders.find(orderId));
    return reply(order ? `Order ${order.id} is ${order.status}.` : `I know no order ${orderId}.`);
  }

  /** Takes three seconds: time enough to stop the process and see the turn finish after a restart. */
  @Intent()
  async warehouse(turn: Turn): Promise<Answer> {
    const orderId = numberIn(turn.input.text);
    if (!orderId) return reply('About which order shall I ask the warehouse?');
    return reply(await turn.step('ask warehouse', ({ signal }) => this.orders.askWarehouse(orderId, signal)));
  }

  /** Shown word by word as it is said, the way a model's answer comes. */
  @Intent()
  async policy(turn: Turn): Promise<Answer> {
    for (const text of POLICY.split(/(?<= )/)) {
      await turn.emit({ type: 'delta', data: { text } });
      await delay(100, undefined, { signal: turn.signal });
    }
    return reply(POLICY);
  }

  /** Three steps: the order, the reason, a confirmation. */
  @Intent()
  async refund(turn: Turn): Promise<Answer> {
    const { refund } = turn.state;
    switch (refund?.step) {
      case 'confirm':
        return this.confirm(turn, refund.orderId ?? '');
      case 'reason':
        return reply(
          `A refund of order ${refund.orderId} because: "${turn.input.text}". Shall I pay it out? (yes or no)`,
          {
            state: { refund: { ...refund, step: 'confirm', reason: turn.input.text } },
          },
        );
      default:
        return this.chooseOrder(turn);
    }
  }

  @Intent()
  goodbye(): Answer {
    return reply('Goodbye!', { status: 'completed' });
  }

  @Intent()
  fallback(): Answer {
    return reply('I did not understand. Ask about an order, or for a refund.');
  }

  private chooseOrder({ input }: Turn): Answer {
    const orderId = numberIn(input.text);
    if (!orderId) return reply('Which order is the refund for?', { state: { refund: { step: 'order' } } });
    if (!this.orders.find(orderId))
      return reply(`I know no order ${orderId}. Which order is the refund for?`, {
        state: { refund: { step: 'order' } },
      });
    return reply(`Why do you want a refund of order ${orderId}?`, { state: { refund: { step: 'reason', orderId } } });
  }

  private async confirm(turn: Turn, orderId: string): Promise<Answer> {
    const done = { state: { refund: undefined } };
    if (/^\s*no\b/i.test(turn.input.text)) return reply('All right, no refund.', done);
    if (!/^\s*yes\b/i.test(turn.input.text)) return reply('Please answer yes or no: shall I pay the refund out?');
    const receipt = await turn.step('pay out', ({ key }) => this.orders.refund(orderId, key));
    return reply(`Done, the money is on its way (receipt ${receipt}).`, done);
  }
}

function numberIn(text: string): string | undefined {
  return /\d{1,10}/.exec(text)?.[0];
}
