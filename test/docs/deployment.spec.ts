import { parse } from 'yaml';
import { read, readPage } from './pages.js';

interface Service {
  readonly image: string;
  readonly command: readonly string[];
  readonly environment: Record<string, string>;
  readonly stop_grace_period: string;
  readonly healthcheck: { readonly test: readonly string[] };
}

const INSTRUCTION = /^(?:FROM|ENV|WORKDIR|COPY|RUN|USER|CMD) \S/;
/** The time that a process needs to stop, after `turns.shutdownGraceMs`, if its Redis does not answer. */
const STOP_SECONDS = 15;
const { blocks } = readPage('docs/deployment.md');
const application = textOf('ts');
const dockerfile = textOf('dockerfile');
const { services } = parse(textOf('yaml'), { merge: true }) as {
  services: Record<'migration' | 'worker' | 'api', Service>;
};

describe('docs/deployment.md', () => {
  it('DAY-20 runs migration, workers and API from one image, with their roles', () => {
    const { migration, worker, api } = services;

    expect(new Set([migration.image, worker.image, api.image]).size).toBe(1);
    expect([worker.environment.ROLE, api.environment.ROLE]).toEqual(['work', 'submit']);
    expect(worker.environment).toMatchObject(migration.environment);
    expect(read('docs/stores/migrations.md')).toContain(migration.command.join(' '));
  });

  it('DAY-20 checks the health routes of docs/operations.md', () => {
    const routes = [...read('docs/operations.md').matchAll(/@Get\('(live|ready|lanes)'\)/g)].map(
      ([, route]) => `/health/${route}`,
    );

    expect(routes).toHaveLength(3);
    for (const route of routes) expect(read('docs/deployment.md')).toContain(`\`${route}\``);
    expect(services.api.healthcheck.test.join(' ')).toContain('/health/ready');
  });

  it('DAY-20 gives processes the time that they need to stop', () => {
    const graceMs = Number(/shutdownGraceMs: ([\d_]+)/.exec(application)?.[1]?.replaceAll('_', ''));

    for (const { stop_grace_period: limit } of [services.worker, services.api]) {
      expect(Number(/^(\d+)s$/.exec(limit)?.[1])).toBeGreaterThanOrEqual(graceMs / 1000 + STOP_SECONDS);
    }
  });

  it('DAY-20 starts Node directly, so that SIGTERM reaches it', () => {
    const lines = dockerfile.split('\n').filter((line) => line !== '');

    expect(lines.filter((line) => !INSTRUCTION.test(line))).toEqual([]);
    expect(JSON.parse(/^CMD (.*)$/m.exec(dockerfile)?.[1] ?? '')).toEqual(['node', 'dist/main.js']);
  });
});

function textOf(language: string): string {
  return blocks.find((block) => block.language === language)?.text ?? '';
}
