import { StoreUnavailableError } from 'nestjs-agent-sessions';

describe('StoreUnavailableError', () => {
  it('TRN-01 a store that does not say so has perhaps written', () => {
    expect(new StoreUnavailableError('It broke.').maybeApplied).toBe(true);
    expect(new StoreUnavailableError('It broke.', { cause: new Error('EPIPE') }).maybeApplied).toBe(true);
    expect(new StoreUnavailableError('There was no connection.', { maybeApplied: false }).maybeApplied).toBe(false);
  });
});
