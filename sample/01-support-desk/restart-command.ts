import { relative } from 'node:path';

/** The settings of a sample. They contain no secrets, because the command is printed. */
const SETTINGS = ['PORT', 'SESSIONS_DB', 'PROVIDER_URL', 'MODEL'];

/**
 * Returns the shell command that starts this program again with the same settings. Unlike `npm start`, it neither
 * compiles nor looks for changes.
 */
export function restartCommand(url: string): string {
  // PORT=0 selects a free port, and the page must find the server on the same one.
  const { port } = new URL(url);
  const settings = SETTINGS.flatMap((name) => {
    const value = process.env[name];
    return value === undefined ? [] : [`${name}=${quoted(name === 'PORT' ? port : value)}`];
  });
  return [...settings, 'node', quoted(relative('', process.argv[1]))].join(' ');
}

function quoted(value: string): string {
  return /^[\w./:@-]+$/.test(value) ? value : `'${value.replaceAll("'", "'\\''")}'`;
}
