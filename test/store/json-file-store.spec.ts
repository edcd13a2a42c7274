import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describeSessionsAdapter } from 'nestjs-agent-sessions/testing';
import { jsonFileAdapter } from '../../sample/02-json-file-store/json-file-adapter.js';

const folder = mkdtempSync(join(tmpdir(), 'json-file-store-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let now = Date.now();
const clock = () => now;

describeSessionsAdapter('json file', () => ({
  adapter: jsonFileAdapter({ file: join(folder, 'suite.jsonl'), clock }),
  elapse: async (ms) => {
    now += ms;
  },
}));
