import { Application, Comment, ReflectionKind } from 'typedoc';

const GIVEN_BY_READERS = /(Options|Settings|Config|Input|Query)$/;
const SAYS_DEFAULT = /default|left out/i;

/** A plugin of typedoc: what readers fill in says of each property what it is, and what holds without it. */
export function load(app) {
  app.on(Application.EVENT_VALIDATE_PROJECT, (project) => {
    for (const type of project.getReflectionsByKind(ReflectionKind.ClassOrInterface)) {
      if (!GIVEN_BY_READERS.test(type.name)) continue;
      for (const property of type.getChildrenByKind(ReflectionKind.Property)) {
        const text = Comment.combineDisplayParts(property.comment?.summary);
        if (text === '') app.logger.validationWarning(`${property.getFullName()} does not say what it is.`);
        else if (property.flags.isOptional && !SAYS_DEFAULT.test(text)) {
          app.logger.validationWarning(`${property.getFullName()} does not say its default.`);
        }
      }
    }
  });
}
