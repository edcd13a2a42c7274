import { inspect } from 'node:util';
import { type LoggerService } from '@nestjs/common';

/** Records log entries as strings: the level, then all arguments. */
export function capturingLogger(): { lines: string[]; logger: LoggerService } {
  const lines: string[] = [];
  const write =
    (level: string) =>
    (...parts: unknown[]): void =>
      void lines.push(`${level} ${parts.map((part) => (typeof part === 'string' ? part : inspect(part))).join(' ')}`);
  const logger = { log: write('log'), warn: write('warn'), error: write('error'), debug: write('debug') };
  return { lines, logger: { ...logger, verbose: write('verbose'), fatal: write('fatal') } };
}
