import { type Script, type ScriptedAnswer, type ScriptedFailure } from '../../sample/06-ai-chat/provider/script.js';
import { type ProviderOptions, ScriptedProvider } from '../../sample/06-ai-chat/provider/scripted-provider.js';

const running: ScriptedProvider[] = [];

/** Starts a model provider, which is stopped after the test. */
export async function startProvider(script: Script, options?: ProviderOptions): Promise<ScriptedProvider> {
  const provider = await ScriptedProvider.start(script, options);
  running.push(provider);
  return provider;
}

/** The first response to the first request, and so on. Further requests get an error response. */
export function inOrder(...responses: (ScriptedAnswer | ScriptedFailure)[]): Script {
  return (_, { requests }) =>
    responses[requests] ?? { status: 400, message: `The script has no response to request ${requests + 1}.` };
}

afterEach(async () => {
  await Promise.all(running.splice(0).map((provider) => provider.stop()));
});
