/** Runs the provider in its own process, which survives a kill of the application. See the README of the sample. */
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type Script } from './script.js';
import { ScriptedProvider } from './scripted-provider.js';
import { shopAssistant } from './shop-assistant.js';

/** `SCRIPT` is a module that exports a `script`. */
const { PORT = '4000', PAUSE_MS = '60', SCRIPT } = process.env;

const script = SCRIPT ? await load(SCRIPT) : shopAssistant;
const provider = await ScriptedProvider.start(script, { port: Number(PORT), pauseMs: Number(PAUSE_MS) });
console.log(`The provider listens on ${provider.baseURL} .`);

async function load(file: string): Promise<Script> {
  const module = (await import(pathToFileURL(resolve(file)).href)) as { readonly script: Script };
  return module.script;
}
