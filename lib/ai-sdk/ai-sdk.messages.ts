const MODEL =
  'must be a language model of the AI SDK: an object with `specificationVersion` v2, v3 or v4, ' +
  '`doGenerate` and `doStream`.';

/** The messages of the errors in ai-sdk.errors.ts, and of language-model.ts and refused-access.ts. */
export const aiSdkMessages = {
  /** @param model the durable model, with its key */
  promptMismatch: (model: string, call: number, differences: readonly string[]): string =>
    `Call ${call} of ${model} differs from the call whose answer an earlier attempt has stored, in: ` +
    `${differences.join(', ')}. A prompt must be the same in every attempt. Read times, random values and data that ` +
    'changes in a step before the call. Give loops that may run in another order their own keys: ' +
    "durableModel(turn, model, { key: 'search' }).",

  /** @param model as for `promptMismatch` */
  modelKeyRequired: (model: string): string =>
    `Calls of ${model} run in parallel: after a retry, an answer could reach another call. Give each loop its ` +
    'own key, which is the same in every attempt: durableModel(turn, model, { key: topic.id }), or ' +
    'durableCalls(turn, { key: topic.id }).',

  incompleteAnswer: (): string =>
    'The answer of the model was cut off: its stream ended without a `finish` part. It is not stored, and the turn is ' +
    'retried. If this repeats, check the provider and the proxies before it.',

  notAModel: (received: string): string => `${MODEL} Received: ${received}.`,

  modelIdGiven: (id: string): string =>
    `${MODEL} Received: the string ${JSON.stringify(id)}. Pass a model instead of its id, for example ` +
    `gateway(${JSON.stringify(id)}).`,

  missingKeyCure: (): string =>
    'Set the API key or setting of the model provider for every process that runs turns, and restart these processes.',

  refusedKeyCure: (status: string): string =>
    `The model provider has answered ${status}. Check the API key, and whether its account may use the model.`,
};
