import { type ExecutionContext } from '@nestjs/common';
import { SessionsConfigurationError, SingleUserGuard } from 'nestjs-agent-sessions';
import { inProduction } from '../support/production.js';
import { said, startChatApp } from './chat-app.js';
import { echo } from './chat-echo.js';
import { PLATFORMS } from './http-app.js';

describe.each(PLATFORMS)('SingleUserGuard on $name', (platform) => {
  it('DAY-01 lets requests without credentials use the chats of one user', async () => {
    const { orchestrator } = echo();
    const chat = { guards: [SingleUserGuard] };
    // The application resolves the user by the default, from request.user.
    const { ask, json, sessions } = await startChatApp({
      orchestrators: [orchestrator],
      platform,
      chat,
      principal: undefined,
    });

    const answer = await (await ask('POST', '', { body: { id: 'c1', message: said('hello') } })).text();

    expect(answer).toContain('"delta":"hello"');
    expect(await sessions.get('c1')).toMatchObject({ userId: 'single-user' });
    expect((await json<{ chats: object[] }>('GET', '')).chats).toHaveLength(1);
  });
});

describe('SingleUserGuard', () => {
  it('DAY-01 names the kind of a request that it does not support, and the cure', () => {
    const context = { getType: () => 'ws' } as unknown as ExecutionContext;

    expect(() => new SingleUserGuard().canActivate(context)).toThrow(
      'SingleUserGuard supports only HTTP requests. Received: ws. Replace it with a guard that authenticates your users',
    );
  });
});

describe('SingleUserGuard in production', () => {
  inProduction();

  it('DAY-01 stops the start, and names the cure', async () => {
    const { orchestrator } = echo();
    const chat = { guards: [SingleUserGuard] };
    const start = startChatApp({ orchestrators: [orchestrator], chat });

    await expect(start).rejects.toThrow(SessionsConfigurationError);
    await expect(start).rejects.toThrow(
      'SingleUserGuard lets every request in as the same user, and NODE_ENV is "production". Replace it with a guard',
    );
  });
});
