/** The messages of the chat controller and the state controller. */
export const httpMessages = {
  emptyAnswer: (orchestrator: string): string =>
    `A turn of the orchestrator ${orchestrator} has completed without an answer, so the chat shows nothing. Return ` +
    'reply(text) or streamReply(turn, ...). The keys of another object change the state, which the chat does not show. ' +
    'Neither does it show events of turn.emit().',

  noMessage: (): string =>
    'must have a message, such as ' +
    '{ "message": { "id": "m1", "role": "user", "parts": [{ "type": "text", "text": "Hello" }] } }, ' +
    'or a list as `messages`.',

  bodyTooLarge: (): string =>
    'The body exceeds the limit of the body parser (100 KB by default on Express, 1 MiB on Fastify). To raise it, call ' +
    'app.useBodyParser() in the server.',

  textTooLarge: (): string =>
    'A body of the type text/plain must have at most 4 MiB. Send only the last message, as application/json: set ' +
    'prepareSendMessagesRequest of the transport.',

  /** @param turnId as logged */
  repeatsFailed: (turnId: string, code = 'TURN_FAILED'): string =>
    `A message repeats that of turn ${turnId}, which has failed (${code}). It is not run again. To run it again, send it with another id.`,

  changedMessage: (messageId: string): string =>
    `The chat already has the message ${messageId} with the same parts, and other metadata or another orchestrator. ` +
    'To repeat the request, send the message unchanged. Use a new id for a new message.',

  unknownAnswer: (messageId: string): string =>
    `Turn not found: ${messageId}. To send a message of the user, give it the role user. A message of the role ` +
    'assistant adds approvals and tool outputs to the answer with its id, which this chat does not have.',

  unknownMessage: (messageId: string): string =>
    `The chat has no turn for the message ${messageId}, so the message cannot be edited or answered again. The module ` +
    'deletes turns some time after they settled (sweep.purgeTurnsAfterSeconds, a week by default). Send a new message.',

  replacesAnswer: (messageId: string): string =>
    `must name the message of the user to edit. It names the answer ${messageId}. To add an approval or the output of a ` +
    'tool to it, send the message of this answer as `message` or in `messages`.',

  moreRefusals: (route: string, count: number, codes: readonly string[]): string =>
    `${route}: ${count} more requests without a principal were refused since the last line (${codes.join(', ')}).`,

  /** @param granted the capability of the principal, as shown in messages */
  unknownWildcard: (granted: string, wildcard: string, capabilities: readonly string[]): string =>
    `The capability ${granted} of the principal is not a known wildcard. The only one is ${wildcard}. Grant that, ` +
    `or name the capabilities: ${capabilities.join(', ')}.`,
};
