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

export default tseslint.config(
  { ignores: ['dist/', '**/build/', 'coverage/', '*.js', '.ci/'] },
  js.configs.recommended,
  ...tseslint.configs.recommendedTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      'no-duplicate-imports': 'error',
      '@typescript-eslint/consistent-type-imports': ['error', { fixStyle: 'inline-type-imports' }],
      '@typescript-eslint/explicit-module-boundary-types': 'error',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      // A method that keeps a promise-returning contract need not await anything itself.
      '@typescript-eslint/require-await': 'off',
    },
  },
  {
    files: ['test/**/*.ts', 'test/**/*.mjs'],
    rules: { '@typescript-eslint/explicit-module-boundary-types': 'off' },
  },
  {
    // Programs that tests start as they are.
    files: ['test/**/*.mjs'],
    extends: [tseslint.configs.disableTypeChecked],
  },
  {
    // What a browser runs as it is.
    files: ['sample/*/public/*.js'],
    extends: [tseslint.configs.disableTypeChecked],
    languageOptions: { parserOptions: { projectService: false }, globals: BROWSER },
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
