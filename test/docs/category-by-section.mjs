import { Converter, ReflectionCategory } from 'typedoc';
import { ENTRY_POINTS, readEntry } from '../../.ci/api-sections.js';

/** After TypeDoc has removed what is internal, and before its own categories, which keep those that exist. */
const PRIORITY = -150;

/** A TypeDoc plugin that divides the page of each entry point by the section comments of its file. */
export function load(app) {
  app.converter.on(
    Converter.EVENT_RESOLVE_END,
    ({ project }) => {
      for (const { name, source } of ENTRY_POINTS) {
        const entry = project.children?.find((child) => child.name === name);
        const { sections } = readEntry(source);
        if (!entry || sections.some(({ title }) => title === undefined)) continue;
        entry.categories = sections.map((section) => categoryOf(section, entry));
      }
    },
    PRIORITY,
  );
}

/** Returns a section's symbols. A symbol that another entry point exports too has its page there. */
function categoryOf({ title, names }, entry) {
  const category = new ReflectionCategory(title);
  category.children = names
    .flatMap((name) => entry.children.filter((child) => child.name === name))
    .map((child) => (child.isReference() ? child.getTargetReflectionDeep() : child));
  return category;
}
