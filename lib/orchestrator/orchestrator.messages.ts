import { inspect } from 'node:util';
import { closestOf } from '../common/known-keys.js';

/** The differences between a checkpoint and the orchestrator that loads it. */
export interface Drift {
  readonly orchestrator: string;
  readonly savedVersion: string;
  readonly currentVersion: string;
  /**
   * True if a newer version of the orchestrator wrote the checkpoint. The turn is then retried, because a worker of
   * that version may run it.
   */
  readonly isNewer: boolean;
  /** True if the orchestrator has migrations, but none from this version. */
  readonly lacksMigration: boolean;
  /** Intents that the orchestrator no longer has. */
  readonly missing: readonly string[];
}

/** The messages of the errors in orchestrator.errors.ts, and of intent-outcome.ts, state-advice.ts and tool-result.ts. */
export const orchestratorMessages = {
  stepKeyRequired: (step: string): string =>
    `Step ${JSON.stringify(step)} is repeated without a key where steps run in parallel: after a retry, its result could ` +
    `reach another call. Add a key: turn.step(${JSON.stringify(step)}, work, { key: order.id }).`,

  wrongStepContext: (call: string, context: string): string =>
    `${call} runs in the asynchronous context of ${context}, so its own step or tool call is unknown. A limiter or pool ` +
    'has started the code there. Give it AsyncResource.bind(task), or call `info.step` instead of `turn.step`.',

  unknownIntent: (orchestrator: string, intent: string, known: readonly string[]): string =>
    `Orchestrator ${orchestrator} has no intent ${JSON.stringify(intent)}.${intentHint(intent, known)}`,

  noIntent: (orchestrator: string): string =>
    `The route of orchestrator ${orchestrator} returned no intent. Expected the name of an intent, a list of names, or END_TURN ` +
    'for a turn that needs none.',

  unknownOutcomeKey: (intent: string, key: string, rule: string): string =>
    `intent ${intent}: the option ${JSON.stringify(key)} of its reply ${rule} Change its name.`,

  wrongState: (orchestrator: string, path: string, rule: string): string =>
    `Orchestrator ${orchestrator}: the new state does not match its schema: ${path} ${rule}`,

  responseCure: (): string =>
    'To answer with a model, return streamReply(turn, { model }); with text, reply(await response.text()).',

  streamCure: (): string =>
    'An intent cannot return a generator or a stream. To stream a model, return streamReply(turn, { model }). For ' +
    'anything else, await the whole text and return reply(text).',

  /** @param key the key of the object that was meant as a reply */
  replyAsState: (intent: string, key: string): string =>
    `intent ${intent} returned an object with the key ${key}, which is not a reply but a change of the state. ` +
    `To answer, return reply(text). To set this key of the state, return turnOutcome({ state: { ${key} } }).`,

  readOnlyCure: (): string =>
    'A turn and its state are read-only. If the handler changes them, return the change instead: ' +
    'reply(text, { state: { ... } }).',

  /** @param saved the version that has written the state */
  /** @param difference between the state and the initial one, in these keys */
  stateShapeCure: (
    orchestrator: string,
    version: string,
    saved: string,
    difference: string,
    keys: readonly string[],
  ): string => {
    const lacks = `${difference}: ${keys.join(', ')}`;
    const migrate = `migrate: (state) => ({ ...state, ${keys[0]}: ... }) }]`;
    if (saved !== version) {
      return (
        `The stored state, of version ${saved} of ${orchestrator}, ${lacks}. Add a migration that sets them, such as ` +
        `migrations: [{ from: '${saved}', to: '${version}', ${migrate}.`
      );
    }
    return (
      `The stored state ${lacks}. If earlier code of ${orchestrator} has written it, set a higher version than ` +
      `${version}, and add a migration that sets them, such as migrations: [{ from: '${version}', to: '...', ${migrate}.`
    );
  },

  /** @param turnId as logged */
  toolFailed: (tool: string, turnId: string): string =>
    `Tool ${JSON.stringify(tool)} failed in turn ${turnId}. The turn continues: the model and the chat receive the ` +
    'message of this error as the result of the call.',

  /** Names no session, because the message is logged too. */
  drift: (saved: string, current: string, drift?: Drift): string => {
    const parts = 'intents, routing, windows, iterations or state schema';
    const structure = `another structure (${parts}: ${saved.slice(0, 12)}, now ${current.slice(0, 12)})`;
    if (!drift)
      return `The session's last checkpoint was written by ${structure}. Adopt the current one with force: true.`;
    const { orchestrator, savedVersion, currentVersion, isNewer, lacksMigration, missing } = drift;
    const writtenBy = `Orchestrator ${orchestrator}: the session's last checkpoint was written by`;
    if (isNewer) {
      return (
        `${writtenBy} version ${savedVersion}, which is newer than ${currentVersion} in this process. A process with version ${savedVersion} ` +
        `must run the turn. To continue with ${currentVersion}, use force: true.`
      );
    }
    const removed = missing.length > 0 ? ` Intents that were removed or renamed: ${missing.join(', ')}.` : '';
    const advice = `a migration. During development, start new sessions or use force: true.${removed}`;
    if (lacksMigration) {
      return `${writtenBy} version ${savedVersion}, and no migration leads from it to ${currentVersion}. Add ${advice}`;
    }
    return savedVersion === currentVersion
      ? `${writtenBy} ${structure}, but the version is still ${currentVersion}. Set a new version and add ${advice}`
      : `${writtenBy} version ${savedVersion}, with ${structure}. Add ${advice}`;
  },

  /** The two options to add. They say that the state does not change, which only the application knows. */
  driftCure: ({ orchestrator, savedVersion, currentVersion }: Drift): string => {
    const version = savedVersion === currentVersion ? versionAfter(currentVersion) : currentVersion;
    const [from, to] = [savedVersion, version].map((each) => inspect(each));
    return [
      `If the state does not change, set these options of ${orchestrator}:`,
      `  version: ${to},`,
      `  migrations: [{ from: ${from}, to: ${to}, migrate: (state) => state }],`,
    ].join('\n');
  },
};

/** Names the intents of an orchestrator, and the closest one. */
export function intentHint(intent: string, known: readonly string[]): string {
  const close = closestOf(intent, known);
  return `${close === undefined ? '' : ` Did you mean ${JSON.stringify(close)}?`} It has: ${known.join(', ')}.`;
}

/** Increases the last number: `1.9` becomes `1.10`, `2026-08` becomes `2026-09`. */
function versionAfter(version: string): string {
  const [last = ''] = /\d+$/.exec(version) ?? [];
  if (last === '') return `${version}2`;
  const next = String(BigInt(last) + 1n).padStart(last.length, '0');
  return version.slice(0, version.length - last.length) + next;
}
