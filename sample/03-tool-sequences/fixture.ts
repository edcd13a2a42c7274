import { type ChatMessage, type Conversation } from './conversation.js';

let calls = 0;

/** Some conversations, so that the sample works without recordings. */
export const FIXTURE: readonly Conversation[] = [
  conversation('a cancellation as it should be', [
    user('I want to cancel a trip. My user id is nora_berg_2041.'),
    ...call('get_user_details', { user_id: 'nora_berg_2041' }, '{"name":"Nora Berg","reservations":["QX7TLM"]}'),
    ...call('get_reservation_details', { reservation_id: 'QX7TLM' }, '{"cabin":"business","flights":["HAT101"]}'),
    agent('I can cancel QX7TLM, business, flight HAT101; the money is back within a week. Shall I? (yes/no)'),
    user('Yes, please.'),
    ...call('cancel_reservation', { reservation_id: 'QX7TLM' }, '{"status":"cancelled"}'),
    agent('QX7TLM is cancelled.'),
  ]),
  conversation('an agent in a hurry', [
    user('Cancel QX7TLM, quick!'),
    ...call('cancel_reservation', { reservation_id: 'QX7TLM' }, '{"status":"cancelled"}'),
    agent('Who are you?'),
    user('Yes, sorry, I am nora_berg_2041.'),
    ...call('get_user_details', { user_id: 'nora_berg_2041' }, '{"name":"Nora Berg","reservations":["QX7TLM"]}'),
    ...call('get_reservation_details', { reservation_id: 'QX7TLM' }, '{"cabin":"business","flights":["HAT101"]}'),
    ...call('cancel_reservation', { reservation_id: 'QX7TLM' }, '{"status":"cancelled"}'),
    agent('That would be QX7TLM, business, flight HAT101. Shall I cancel it? (yes/no)'),
    user('Go on then.'),
    ...call('cancel_reservation', { reservation_id: 'QX7TLM' }, '{"status":"cancelled"}'),
    agent('Please say yes if I shall.'),
    user('Yes!'),
    ...call('cancel_reservation', { reservation_id: 'QX7TLM' }, '{"status":"cancelled"}'),
    ...call('think', { thought: 'A certificate would be nice.' }, ''),
    ...call('confirm', {}, 'Yes!'),
    ...call('send_certificate', { user_id: 'nora_berg_2041', amount: 100 }, 'Certificate added'),
    agent('QX7TLM is cancelled.'),
  ]),
  conversation('a payment that fails, and a human', [
    user('omar_diaz_7716 here: book me HAT205 tomorrow, please.'),
    ...call('get_user_details', { user_id: 'omar_diaz_7716' }, '{"name":"Omar Diaz","gift_card":20}'),
    ...call('search_direct_flight', { date: '2024-05-16' }, '[{"flight":"HAT205","price":140}]'),
    agent('HAT205 tomorrow, economy, 140 dollars from your gift card. Shall I book it? (yes/no)'),
    user('Sounds good. Yes.'),
    ...call('book_reservation', { flight: 'HAT205' }, 'Error: not enough balance on the gift card'),
    ...call('transfer_to_human_agents', { summary: 'The gift card does not suffice.' }, 'Transfer successful'),
    ...call('book_reservation', { flight: 'HAT205' }, '{"reservation":"ZK01PA"}'),
    agent('A colleague will help you.'),
  ]),
];

function conversation(id: string, messages: readonly ChatMessage[]): Conversation {
  return { id, messages };
}

function user(content: string): ChatMessage {
  return { role: 'user', content };
}

function agent(content: string): ChatMessage {
  return { role: 'assistant', content };
}

/** A call and its result. */
function call(name: string, args: object, result: string): ChatMessage[] {
  const id = `call-${(calls += 1)}`;
  return [
    { role: 'assistant', content: null, tool_calls: [{ id, function: { name, arguments: JSON.stringify(args) } }] },
    { role: 'tool', content: result, tool_call_id: id },
  ];
}
