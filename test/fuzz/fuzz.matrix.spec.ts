import 'reflect-metadata';
import { Logger } from '@nestjs/common';
import fc from 'fast-check';
import { STATE_CAPABILITIES } from 'nestjs-agent-sessions/http';
import { BROKEN_JSON } from './broken-json.js';
import { checkRequest } from './check-request.js';
import { fuzzRequest } from './requests.js';
import { FuzzTarget, PLATFORMS } from './target.js';

const RUNS = 500;
/** A fixed seed, so that requests are the same each time; `npm run fuzz` uses others. */
const SEED = 190205497;

beforeAll(() => void Logger.overrideLogger(false));
afterAll(() => void Logger.overrideLogger(true));

describe.each(PLATFORMS)('any request to the controllers on %s', (platform) => {
  let target: FuzzTarget;

  beforeAll(async () => {
    target = await FuzzTarget.start(platform);
  });

  afterAll(() => target.close());

  it('NST-16 STA-26 is rejected without a 5xx and without a change, or changes only permitted data', async () => {
    const statuses = new Set<number>();

    await fc.assert(
      fc.asyncProperty(fuzzRequest, async (request) => {
        statuses.add(await checkRequest(target, request));
      }),
      { numRuns: RUNS, seed: SEED },
    );

    expect([...statuses]).toEqual(expect.arrayContaining([200, 400, 401, 403, 404]));
  }, 120_000);

  it.each(['describe', 'reset', 'compact'])(
    'STA-20 invalid JSON bodies are rejected, and no body of the corpus breaks a rule: %s',
    async (operation) => {
      const headers = {
        'x-user-id': 'ann',
        'x-capabilities': STATE_CAPABILITIES.join(' '),
        'content-type': 'application/json',
      };
      for (const text of BROKEN_JSON) {
        const body = text.replaceAll('ID', 'ID0');
        const status = await checkRequest(target, { method: 'POST', path: `/state/${operation}`, headers, body });
        if (!isJson(text)) expect([text, status]).not.toEqual([text, 200]);
      }
    },
  );
});

function isJson(text: string): boolean {
  try {
    // Parsers may skip a byte order mark.
    JSON.parse(text.replace('\ufeff', ''));
    return true;
  } catch {
    return false;
  }
}
