import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, relative } from 'node:path';
import tsJest from 'ts-jest';

const require = createRequire(import.meta.url);
const settings = [import.meta.filename, `${import.meta.dirname}/../../tsconfig.json`].map((file) =>
  readFileSync(file, 'utf8'),
);
const versions = ['ts-jest', 'typescript'].map((name) => require(`${name}/package.json`).version);

const transformer = tsJest.default.createTransformer({ useESM: true, diagnostics: false });

/** Transforms TypeScript with ts-jest. A copy of the project in which a lane runs uses what the project has transformed. */
export default {
  process: (text, path, options) => transformer.process(text, pathInProject(path, options), options),
  processAsync: (text, path, options) => transformer.processAsync(text, pathInProject(path, options), options),
  getCacheKey: (text, path, options) =>
    createHash('sha1')
      .update(JSON.stringify([pathInProject(path, options), options.supportsStaticESM, ...versions, ...settings]))
      .update(text)
      .digest('hex'),
};

function pathInProject(path, { config: { rootDir, id: project } }) {
  return join(project, relative(rootDir, path));
}
