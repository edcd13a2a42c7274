import { readFileSync } from 'node:fs';

const { repository } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  repository: { url: string };
};

/** The address of the repository, from package.json. While that is a placeholder, an address that does not exist. */
export const REPOSITORY_URL = repository.url
  .replace('REPOSITORY_URL', 'https://repository.invalid/nestjs-agent-sessions')
  .replaceAll(/^git\+|\.git$/g, '');
