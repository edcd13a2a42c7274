/** The address of the repository. A placeholder until the first release; CONTRIBUTING.md lists all placeholders. */
export const REPOSITORY_URL = 'https://repository.invalid/nestjs-agent-sessions';
