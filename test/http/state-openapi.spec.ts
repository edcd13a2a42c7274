import 'reflect-metadata';
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { getMetadataStorage } from 'class-validator';
import {
  CompactStateRequest,
  DescribeStateRequest,
  ResetStateRequest,
  type StateOperationResult,
  type StateStoreReport,
} from 'nestjs-agent-sessions/http';
import { preservedBy } from '../../lib/conversation/compaction-plan.js';
import { ANN, fill, stateApp } from './state-app.js';

interface Schema {
  readonly type?: string;
  readonly description?: string;
  readonly properties: Record<string, Schema>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly additionalProperties?: boolean;
}

interface Content {
  readonly content: { readonly 'application/json': { readonly schema: Schema } };
}

interface Document {
  readonly paths: Record<
    string,
    {
      readonly post: {
        readonly requestBody: Content;
        readonly responses: Record<string, Content>;
        readonly parameters: readonly { readonly name: string; readonly in: string }[];
      };
    }
  >;
}

const REQUESTS = { describe: DescribeStateRequest, reset: ResetStateRequest, compact: CompactStateRequest };

describe('the control plane in an OpenAPI document', () => {
  let document: Document;

  beforeAll(() => {
    const program = fileURLToPath(new URL('./fixtures/openapi.mjs', import.meta.url));
    document = JSON.parse(execFileSync(process.execPath, [program], { encoding: 'utf8', timeout: 60_000 })) as Document;
  }, 70_000);

  it('NST-16 has the three operations', () => {
    const paths = Object.keys(document.paths).filter((path) => path.startsWith('/state'));

    expect(paths).toEqual(['/state/describe', '/state/reset', '/state/compact']);
  });

  it.each(Object.entries(REQUESTS))('NST-16 %s has exactly the body properties of its class', (operation, type) => {
    const { requestBody, parameters } = document.paths[`/state/${operation}`].post;
    const { properties, additionalProperties } = requestBody.content['application/json'].schema;
    const rules = getMetadataStorage().getTargetValidationMetadatas(type, '', false, false);

    expect(Object.keys(properties).sort()).toEqual([...new Set(rules.map(({ propertyName }) => propertyName))].sort());
    expect(additionalProperties).toBe(false);
    expect(parameters).toMatchObject([{ name: 'Idempotency-Key', in: 'header' }]);
  });

  it('NST-16 STA-24 documents the defaults of preserveRecent', () => {
    const { requestBody } = document.paths['/state/compact'].post;
    const { preserveRecent } = requestBody.content['application/json'].schema.properties;

    expect(preserveRecent.description).toContain(
      `default ${preservedBy({ strategy: 'tokens' })}, recent ${preservedBy({})}.`,
    );
    expect(preservedBy({ strategy: 'summary' })).toBe(preservedBy({ strategy: 'tokens' }));
  });

  it('NST-16 describes the rejections, and a result as the API returns it', async () => {
    const desk = await stateApp();
    const { id } = await desk.session();
    await fill(desk.adapter, id);
    const answer = await desk.post('/state/describe', { sessionId: id }, ANN).expect(200);
    await desk.app.close();
    const result = answer.body as StateOperationResult;
    const { responses } = document.paths['/state/describe'].post;
    const { properties, required } = responses['200'].content['application/json'].schema;
    const report = properties.stores.items;

    expect(Object.keys(responses)).toEqual([
      '200',
      '400',
      '401',
      '403',
      '404',
      '409',
      '413',
      '415',
      '422',
      '503',
      '504',
    ]);
    expect(Object.keys(properties).sort()).toEqual(Object.keys(result).sort());
    expect(required).toEqual(Object.keys(properties));
    expect(result.stores.flatMap(unknownKeys)).toEqual([]);

    function unknownKeys(store: StateStoreReport): string[] {
      return Object.keys(store).filter((key) => !(key in (report?.properties ?? {})));
    }
  });
});
