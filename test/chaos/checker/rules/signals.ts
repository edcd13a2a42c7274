import { type DoneCall, isDone, mayBeDone } from '../calls.js';
import { show } from '../describe.js';
import { groupBy } from '../group-by.js';
import { type Run } from '../run.js';

/** Only the first signal of a name is applied to a turn (TRN-13). */
export function* signals(run: Run): Generator<string> {
  for (const turn of run.turns.values()) {
    const all = turn.clients.filter((call) => call.op === 'signal');
    for (const [name, given] of groupBy(all, ({ args }) => args.name)) {
      const done = given.filter(isDone) as DoneCall<'signal'>[];
      const [first, second] = done.filter(({ value }) => value.accepted);
      const refused = done.find(({ value }) => !value.accepted);
      const place = `${show.turn(turn)}, signal ${name}`;
      if (second) yield `${place}: two count, ${show.call(first)} and ${show.call(second)}`;
      if (!refused) continue;
      const others = given.filter(
        (call) => call !== refused && mayBeDone(call) && !(isDone(call) && !call.value.accepted),
      );
      const earliest = Math.min(...others.map(({ sentAt }) => sentAt));
      if (refused.answeredAt < earliest)
        yield `${place}: ${show.call(refused)} returned that another one was first, but none was`;
    }
  }
}
