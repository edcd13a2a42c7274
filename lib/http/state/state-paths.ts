import { type StateOperation } from '../../state/state-report.js';

const STATE_OPERATIONS = ['describe', 'reset', 'compact'] as const satisfies readonly StateOperation[];

const END = new RegExp(`/(${STATE_OPERATIONS.join('|')})/?$`, 'i');

/** The operation at the end of an address, as routers read it; `null` when there is none. */
export function operationAt(url: string): StateOperation | null {
  const [address] = url.split(/[?#]/);
  return (END.exec(decoded(address))?.[1].toLowerCase() as StateOperation | undefined) ?? null;
}

function decoded(address: string): string {
  try {
    return decodeURI(address);
  } catch {
    return address;
  }
}
