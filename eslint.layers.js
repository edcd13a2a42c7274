const DOMAINS = '{common,session,records,turn,checkpoint,orchestration,orchestrator,conversation,state,maintenance}';

const folder = (names) => `^\\.{1,2}/(.*/)?(${names})/`;
const packages = (names) => `^(${names})(/|$)`;

const INDEXES = { regex: '/index\\.js$', message: 'An index is for users of the package: import the file itself.' };
const TESTING = { regex: folder('testing'), message: 'Only tests of applications load it.' };
const BACKENDS = { regex: folder('store|queue'), message: 'Needs a port of the domain, which wiring/ fills in.' };
const TRANSPORTS = { regex: folder('http|transport'), message: 'Knows no HTTP and no other transport.' };
const SERVICES = {
  regex: '(\\.service|/sessions\\.(module|options|providers|settings))\\.js$',
  message: 'A backend implements ports; services call it.',
};
const DRIVERS = {
  regex: packages('typeorm|better-sqlite3|pg|mysql2|ioredis|bullmq|@nestjs/(typeorm|bullmq)'),
  message: 'Belongs to the backend of that name.',
};
const PLATFORMS = {
  regex: packages('express|fastify|@nestjs/(platform-.+|swagger|websockets|microservices|graphql)'),
  message: 'Applications choose it; what is here works with any.',
};
const OPEN_TELEMETRY = { regex: packages('@opentelemetry/.+'), message: 'Only telemetry/ knows it.' };
const EVERYWHERE = [INDEXES, TESTING, PLATFORMS, OPEN_TELEMETRY];

const layer = (files, patterns, ignores = []) => ({
  files: [files],
  ignores,
  rules: { '@typescript-eslint/no-restricted-imports': ['error', { patterns }] },
});

/**
 * Who may import what in lib/. Domain folders know no backend, no HTTP and no driver: wiring/ puts the parts together. Tests
 * may import everything.
 */
export default [
  layer(`lib/${DOMAINS}/**/*.ts`, [...EVERYWHERE, BACKENDS, TRANSPORTS, DRIVERS]),
  layer('lib/{store/*.ts,{store/{embedded,memory},queue/in-process}/**/*.ts}', [
    ...EVERYWHERE,
    TRANSPORTS,
    SERVICES,
    DRIVERS,
  ]),
  layer('lib/{store/{redis,typeorm},queue/bullmq}/**/*.ts', [...EVERYWHERE, TRANSPORTS, SERVICES]),
  layer('lib/{transport,http,terminus}/**/*.ts', [...EVERYWHERE, BACKENDS, DRIVERS]),
  layer('lib/telemetry/**/*.ts', [INDEXES, TESTING, PLATFORMS, BACKENDS, TRANSPORTS, DRIVERS]),
  layer('lib/{*.ts,wiring/**/*.ts}', [...EVERYWHERE, DRIVERS], ['lib/index.ts']),
  layer('lib/testing/**/*.ts', [INDEXES, PLATFORMS, OPEN_TELEMETRY, DRIVERS]),
  // It runs where there is neither Nest nor Node: only the types of the rest.
  layer('lib/client/**/*.ts', [
    { regex: '^(?!\\./)', message: 'Only types, and what is in this folder.', allowTypeImports: true },
  ]),
];
