import { StoreUnavailableError } from 'nestjs-agent-sessions';

describe('StoreUnavailableError', () => {
  it('TRN-01 assumes by default that the store may have written', () => {
    expect(new StoreUnavailableError('It broke.').maybeApplied).toBe(true);
    expect(new StoreUnavailableError('It broke.', { cause: new Error('EPIPE') }).maybeApplied).toBe(true);
    expect(new StoreUnavailableError('Not connected.', { maybeApplied: false }).maybeApplied).toBe(false);
  });
});
