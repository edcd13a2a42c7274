import { parseArgs, type ParseArgsConfig } from 'node:util';

/** An error in the arguments of a program, shown to its user. */
export class UsageError extends Error {}

/** Calls `parseArgs` of Node. @throws UsageError */
export function parseArguments<Config extends ParseArgsConfig>(config: Config): ReturnType<typeof parseArgs<Config>> {
  try {
    return parseArgs(config);
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

/** @throws UsageError */
export function oneOf<Name extends string>(names: readonly Name[], option: string, name: string): Name {
  const found = names.find((known) => known === name);
  if (!found) throw new UsageError(`${option} must be one of ${names.join(', ')}. Received: ${name}.`);
  return found;
}

/** @throws UsageError */
export function toCount(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!/^[1-9]\d{0,8}$/.test(text))
    throw new UsageError(`${option} must be an integer of at least 1. Received: ${text}.`);
  return Number(text);
}
