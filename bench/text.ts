const LENGTH = 1_000_000;
const WORDS =
  'order refund invoice parcel window street garden yellow seven Tuesday because perhaps never customer number please ' +
  'thanks morning delivery address changed twice again shipped broken returned credit card account open closed waiting';

let all = '';

/** Returns words in an order that does not repeat soon: text that compresses like chat, and is the same in every run. */
export function words(bytes: number, seed: number): string {
  all ||= compose();
  const from = (seed * 7919) % (LENGTH - bytes);
  return all.slice(from, from + bytes);
}

function compose(): string {
  const list = WORDS.split(' ');
  let text = '';
  for (let n = 1; text.length < LENGTH;) {
    // A step of xorshift, which is random enough.
    n ^= n << 13;
    n ^= n >>> 17;
    n ^= n << 5;
    text += `${list[Math.abs(n) % list.length]} `;
  }
  return text;
}
