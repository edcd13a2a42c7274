/** Imports point down: a folder imports those before it in this list. */
const ORDER = [
  'common',
  'ledger',
  'chat',
  'telemetry',
  'session',
  'conversation',
  'state',
  'turn',
  'maintenance',
  'orchestration',
  'orchestrator',
  'ai-sdk',
  'transport',
  'records',
  'http',
  'terminus',
  'module',
];
/** The folders that stores and queues import. */
const FOUNDATION = ['common', 'ledger'];
/** Each store imports `store/core`, and those named here. */
const STORES = {
  core: [],
  sql: ['core'],
  memory: ['core'],
  redis: ['core'],
  sqlite: ['core', 'sql'],
  mysql: ['core', 'sql'],
  postgres: ['core', 'sql'],
  // The factory of the adapter chooses the dialect.
  typeorm: ['core', 'sql', 'sqlite', 'mysql', 'postgres'],
};
const QUEUES = ['in-process', 'bullmq'];

const folder = (names) => `^\\.{1,2}/(.*/)?(${names.join('|')})/`;
const packages = (names) => `^(${names})(/|$)`;
const without = (names, left) => names.filter((name) => !left.includes(name));

const INDEXES = { regex: '/index\\.js$', message: 'An index is for users of the package: import the file itself.' };
const TESTING = { regex: folder(['testing']), message: 'Only tests of applications load it.' };
const BACKENDS = {
  regex: folder(['store', 'queue']),
  message: 'Depend on its port in ledger/; module/ connects them.',
};
const DRIVERS = {
  regex: packages('typeorm|better-sqlite3|pg|mysql2|ioredis|bullmq|@nestjs/(typeorm|bullmq)'),
  message: 'Belongs to the backend of that name.',
};
const PLATFORMS = {
  regex: packages('express|fastify|@nestjs/(platform-.+|swagger|websockets|microservices|graphql)'),
  message: 'Applications choose it; the code here works with any.',
};
const OPEN_TELEMETRY = { regex: packages('@opentelemetry/.+'), message: 'Only telemetry/ imports it.' };
const AI_SDK = {
  regex: `${packages('ai|@ai-sdk/.+')}|${folder(['ai-sdk'])}`,
  message: 'Only ai-sdk/ imports the package ai, and users import ai-sdk/.',
};
const EVERYWHERE = [INDEXES, TESTING, PLATFORMS];

/** Forbids these folders; none for an empty list. */
const above = (names, message) => (names.length === 0 ? [] : [{ regex: folder(names), message }]);

const layer = (files, patterns, ignores = []) => ({
  files: [files],
  ignores,
  rules: { '@typescript-eslint/no-restricted-imports': ['error', { patterns }] },
});

const domains = ORDER.map((name, index) =>
  layer(`lib/${name}/**/*.ts`, [
    ...EVERYWHERE,
    ...(name === 'telemetry' ? [] : [OPEN_TELEMETRY]),
    ...(name === 'module' ? [] : [BACKENDS]),
    ...(name === 'ai-sdk' ? [] : [AI_SDK]),
    DRIVERS,
    ...above(ORDER.slice(index + 1), 'Imports point down: see the order of folders in eslint.layers.js.'),
  ]),
);

const BACKEND = [
  ...EVERYWHERE,
  OPEN_TELEMETRY,
  AI_SDK,
  ...above(without(ORDER, FOUNDATION), 'A backend imports ledger/ and common/.'),
];

const stores = Object.entries(STORES).map(([name, others]) =>
  layer(`lib/store/${name}/**/*.ts`, [
    ...BACKEND,
    ...(['core', 'memory'].includes(name) ? [DRIVERS] : []),
    ...above([...without(Object.keys(STORES), [name, ...others]), 'queue'], 'Belongs to another backend.'),
  ]),
);

const queues = [
  layer('lib/queue/*.ts', [...BACKEND, DRIVERS, ...above(['store', ...QUEUES], 'Belongs to one backend.')]),
  ...QUEUES.map((name) =>
    layer(`lib/queue/${name}/**/*.ts`, [
      ...BACKEND,
      ...(name === 'in-process' ? [DRIVERS] : []),
      ...above(['store', ...without(QUEUES, [name])], 'Belongs to another backend.'),
    ]),
  ),
];

/** Who may import what in lib/. Tests may import everything. */
export default [
  ...domains,
  ...stores,
  ...queues,
  layer('lib/testing/**/*.ts', [INDEXES, PLATFORMS, OPEN_TELEMETRY, DRIVERS, AI_SDK]),
  // It runs where there is neither Nest nor Node: only the types of the rest.
  layer('lib/client/**/*.ts', [
    { regex: '^(?!\\./)', message: 'Only types, and what is in this folder.', allowTypeImports: true },
  ]),
];
