import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import {
  defineOrchestrator,
  getOrchestratorToken,
  memoryAdapter,
  type OrchestratorDefinition,
  type OrchestratorHandle,
  SessionsModule,
  type SessionsError,
  SessionStore,
} from 'nestjs-agent-sessions';

const adapter = memoryAdapter(); // in place of a database that outlives the processes

/** Simulates a deploy: one version of the agent answers one message, and stops. */
async function deploy<State>(desk: OrchestratorDefinition<State>, given?: string, force = false): Promise<string> {
  class AppModule {}
  const imports = [SessionsModule.forRoot({ adapter }), SessionsModule.forFeature([desk])];
  const app = await NestFactory.createApplicationContext({ module: AppModule, imports }, { logger: false });
  const handle = app.get<OrchestratorHandle>(getOrchestratorToken(desk), { strict: false });
  const sessionId = given ?? (await app.get(SessionStore).create({ userId: 'ann' })).id;
  const answer = await handle.execute('hello', { sessionId, force }).then(
    ({ reply }) => reply,
    (error: SessionsError) => error.code,
  );
  console.log(`version ${desk.version}: ${answer}`);
  await app.close();
  return sessionId;
}

const first = defineOrchestrator<{ visits?: number }>({
  name: 'desk',
  version: '1',
  intents: { greet: ({ state: { visits = 0 } }) => ({ visits: visits + 1 }) },
});
const reworked = {
  name: 'desk',
  version: '2',
  intents: { show: ({ state }: { readonly state: object }) => JSON.stringify(state) },
};
const migrations = [{ from: '1', to: '2', migrate: ({ visits = 0 }: { visits?: unknown }) => ({ total: visits }) }];

const [migrated, adopted] = [await deploy(first), await deploy(first)];
await deploy(defineOrchestrator(reworked), migrated); // another structure, without a migration
await deploy(defineOrchestrator({ ...reworked, migrations }), migrated);
await deploy(defineOrchestrator(reworked), adopted, true); // with force: true
