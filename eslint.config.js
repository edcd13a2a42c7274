import js from '@eslint/js';
import prettier from 'eslint-config-prettier';
import tseslint from 'typescript-eslint';
import layers from './eslint.layers.js';

const BROWSER = Object.fromEntries(
  [
    'AbortSignal',
    'crypto',
    'document',
    'EventSource',
    'fetch',
    'HTMLButtonElement',
    'matchMedia',
    'ResizeObserver',
    'sessionStorage',
    'setTimeout',
  ].map((name) => [name, 'readonly']),
);

/** The rules that look at one file. Those that need types are in .oxlintrc.json: ESLint takes five times longer for them. */
export default tseslint.config(
  { ignores: ['dist/', '**/build/', 'coverage/', '*.js', '.ci/'] },
  js.configs.recommended,
  ...tseslint.configs.recommended,
  {
    // As in tsconfig.json: types of decorated members are values, so imports of them need no `type`.
    languageOptions: { parserOptions: { experimentalDecorators: true, emitDecoratorMetadata: true } },
    rules: {
      'no-duplicate-imports': 'error',
      '@typescript-eslint/consistent-type-imports': ['error', { fixStyle: 'inline-type-imports' }],
      '@typescript-eslint/explicit-module-boundary-types': 'error',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
    },
  },
  {
    files: ['test/**/*.ts', 'test/**/*.mjs'],
    rules: { '@typescript-eslint/explicit-module-boundary-types': 'off' },
  },
  {
    // What a browser runs as it is.
    files: ['sample/*/public/*.js'],
    languageOptions: { globals: BROWSER },
    rules: { '@typescript-eslint/explicit-module-boundary-types': 'off' },
  },
  {
    // TypeScript infers what components return.
    files: ['**/*.tsx'],
    rules: { '@typescript-eslint/explicit-module-boundary-types': 'off' },
  },
  ...layers,
  prettier,
);
