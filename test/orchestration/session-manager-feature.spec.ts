import { Injectable, Module } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { defineSessionManager, InjectSessionManager, SessionManager, SessionsModule } from '../../lib/index.js';

interface Cart {
  readonly items: readonly string[];
}

const carts = defineSessionManager<Cart>({ namespace: 'carts', createDefault: () => ({ items: [] }) });

@Injectable()
class Shop {
  constructor(@InjectSessionManager(carts) readonly carts: SessionManager<Cart>) {}
}

@Module({ imports: [SessionsModule.forFeature([carts])], providers: [Shop] })
class ShopModule {}

describe('a session manager of the application', () => {
  it("ORC-16 is injected where forFeature registers it, and keeps its states in the application's store", async () => {
    const module = await Test.createTestingModule({ imports: [SessionsModule.forRoot(), ShopModule] }).compile();
    await module.init();
    const shop = module.get(Shop, { strict: false });
    await shop.carts.create('s1');
    await shop.carts.update('s1', ({ items }) => ({ items: [...items, 'tea'] }));
    expect(await shop.carts.get('s1')).toMatchObject({ sessionId: 's1', state: { items: ['tea'] } });
    await module.close();
  });

  it('ORC-16 has a unique namespace, which is not reserved', async () => {
    const start = (...managers: ReturnType<typeof defineSessionManager>[]): Promise<unknown> =>
      Test.createTestingModule({
        imports: [SessionsModule.forRoot(), ShopModule, SessionsModule.forFeature(managers)],
      })
        .compile()
        .then((module) => module.init());
    await expect(start(defineSessionManager({ namespace: 'carts' }))).rejects.toThrow('The namespace "carts"');
    await expect(start(defineSessionManager({ namespace: 'orchestration-state' }))).rejects.toThrow(
      'The namespace "orchestration-state"',
    );
    for (const namespace of ['agent-sessions:tools', 'agent-sessions:state-requests', 'agent-sessions:']) {
      expect(() => defineSessionManager({ namespace })).toThrow('is reserved for this package');
      const options = { orchestration: { namespace } };
      const module = await Test.createTestingModule({ imports: [SessionsModule.forRoot(options)] }).compile();
      await expect(module.init()).rejects.toThrow('is reserved for this package');
    }
  });

  it('ORC-16 DAY-04 reports a missing forRoot and invalid options', async () => {
    await expect(Test.createTestingModule({ imports: [ShopModule] }).compile()).rejects.toThrow(
      'SessionsModule.forFeature([carts]), in the imports of ShopModule, requires SessionsModule.forRoot()',
    );
    expect(() => defineSessionManager({ namespace: '' })).toThrow('namespace must be a string of 1 to 256 characters');
    expect(() => defineSessionManager({ namespace: 'x', ttlMs: 0 })).toThrow('ttlMs must be "never" or an integer');
    expect(() => SessionsModule.forFeature([{} as never])).toThrow('item 0 is not an orchestrator');
  });
});
