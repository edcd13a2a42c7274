import { parseArgs, type ParseArgsConfig } from 'node:util';

/** What is wrong with the arguments of a program, for the person who gave them. */
export class UsageError extends Error {}

/** As `parseArgs` of Node. @throws UsageError */
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
  if (!found) throw new UsageError(`${option} is ${name}; it must be one of ${names.join(', ')}.`);
  return found;
}

/** @throws UsageError */
export function toCount(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new UsageError(`${option} is ${text}; it must be an integer of 1 or more.`);
  return Number(text);
}
