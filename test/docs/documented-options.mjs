import { Application, Comment, ReflectionKind } from 'typedoc';

const GIVEN_BY_READERS = /(Options|Settings|Config|Input|Query|Statics)$/;
const SAYS_ONLY_DEFAULT = /^default\b/i;
const SAYS_DEFAULT = /default|left out/i;

/** A TypeDoc plugin that warns about options without a description or a default. */
export function load(app) {
  app.on(Application.EVENT_VALIDATE_PROJECT, (project) => {
    for (const type of project.getReflectionsByKind(ReflectionKind.ClassOrInterface)) {
      for (const property of type.getChildrenByKind(ReflectionKind.Property)) {
        const text = Comment.combineDisplayParts(property.comment?.summary);
        if (SAYS_ONLY_DEFAULT.test(text)) {
          app.logger.validationWarning(`${property.getFullName()} says its default, and not what it is.`);
        }
        if (!GIVEN_BY_READERS.test(type.name)) continue;
        if (text === '') app.logger.validationWarning(`${property.getFullName()} does not say what it is.`);
        else if (property.flags.isOptional && !SAYS_DEFAULT.test(text)) {
          app.logger.validationWarning(`${property.getFullName()} does not say its default.`);
        }
      }
    }
  });
}
