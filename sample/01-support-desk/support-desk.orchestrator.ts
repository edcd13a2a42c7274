import { setTimeout as delay } from 'node:timers/promises';
import { Intent, Orchestrator, reply, Route, type TurnContext, type TurnOutcome } from 'nestjs-agent-sessions';
import { OrdersService } from './orders.service.js';
import { REFUND_STEPS } from './refund-plan.js';

/** The state of a conversation: small, plain JSON. */
export interface Desk {
  /** The order to refund. */
  refundOf?: string;
}

const POLICY = [
  'You can send back what you bought within thirty days after it has reached you.',
  'Put it into a box, print the label that you find in your account, and hand the parcel in at any post office.',
  'We pay the money back within a week after the parcel has come, the way in which you paid.',
  'When something is wrong with what you bought, we pay the postage as well, or send you a new one if you like that better.',
];

type Turn = TurnContext<Desk>;
type Answer = TurnOutcome<Desk>;

/** A support agent without a model: fixed rules decide, so that it runs anywhere. */
@Orchestrator<Desk>({ name: 'support-desk', version: '1', historyWindow: 20, steps: REFUND_STEPS })
export class SupportDesk {
  constructor(private readonly orders: OrdersService) {}

  /** Answers questions during a refund, too. */
  @Route()
  route({ input: { text }, tools }: Turn): string {
    if (/\bask the warehouse\b/i.test(text)) return 'warehouse';
    if (/\bpolicy\b/i.test(text)) return 'policy';
    if (/\bwhere is\b/i.test(text)) return 'status';
    if (tools.activeStep?.name !== 'help' || /\brefund|money back\b/i.test(text)) return 'refund';
    if (/\border\b/i.test(text)) return 'status';
    if (/^\s*(hi|hello|good (morning|day|evening))\b/i.test(text)) return 'greeting';
    if (/^\s*(bye|goodbye|that's all)\b/i.test(text)) return 'goodbye';
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

  /** Takes three seconds, so that you can stop the process and see the turn complete after a restart. */
  @Intent()
  async warehouse(turn: Turn): Promise<Answer> {
    const orderId = numberIn(turn.input.text);
    if (!orderId) return reply('About which order shall I ask the warehouse?');
    return reply(await turn.step('ask warehouse', ({ signal }) => this.orders.askWarehouse(orderId, signal)));
  }

  /** Emits the answer word by word, like a model. */
  @Intent()
  async policy(turn: Turn): Promise<Answer> {
    for (const sentence of POLICY) await say(turn, `${sentence} `);
    return reply(POLICY.join(' '));
  }

  /** The active step of the plan determines the state of the refund and the allowed tool. */
  @Intent()
  async refund(turn: Turn): Promise<Answer> {
    const { tools } = turn;
    if (tools.activeStep?.name === 'help') await tools.use('begin_refund', 'begin', () => null);
    switch (tools.activeStep?.name) {
      case 'order':
        return this.chooseOrder(turn);
      case 'reason':
        return this.noteReason(turn);
      case 'confirm':
        return this.askForYes(turn);
      default:
        return this.payOut(turn);
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

  private async chooseOrder({ input, tools }: Turn): Promise<Answer> {
    const orderId = numberIn(input.text);
    if (!orderId) return reply('Which order is the refund for?');
    if (!this.orders.find(orderId)) return reply(`I know no order ${orderId}. Which order is the refund for?`);
    await tools.use('choose_order', 'choose', () => orderId);
    return reply(`Why do you want a refund of order ${orderId}?`, { state: { refundOf: orderId } });
  }

  private async noteReason({ input, state, tools }: Turn): Promise<Answer> {
    await tools.use('note_reason', 'note', () => input.text);
    return reply(`A refund of order ${state.refundOf}, because: “${input.text}” Shall I pay it out? (yes or no)`);
  }

  private async askForYes({ input, tools }: Turn): Promise<Answer> {
    if (!/^\s*no\b/i.test(input.text)) return reply('Please answer yes or no: shall I pay the refund out?');
    await tools.use('drop_refund', 'drop', () => null);
    return reply('All right, no refund.');
  }

  /** In any other step `tools.use` throws, and the desk does not pay. */
  private async payOut({ state, tools }: Turn): Promise<Answer> {
    const receipt = await tools.use('pay_out', 'pay', ({ key }) => this.orders.refund(state.refundOf ?? '', key));
    return reply(`Done, the money is on its way (receipt ${receipt}).`);
  }
}

/** Each sentence is a stored step. After a crash, earlier sentences come from the store and are shown at once. */
async function say(turn: Turn, sentence: string): Promise<void> {
  let isNew = false;
  const text = await turn.step('say', async ({ signal }) => {
    isNew = true;
    for (const word of sentence.split(/(?<= )/)) {
      await turn.emit({ type: 'delta', data: { text: word } });
      await delay(80, undefined, { signal });
    }
    return sentence;
  });
  if (!isNew) await turn.emit({ type: 'delta', data: { text } });
}

function numberIn(text: string): string | undefined {
  return /\d{1,10}/.exec(text)?.[0];
}
