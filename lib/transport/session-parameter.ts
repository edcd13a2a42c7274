import { createParamDecorator, type ExecutionContext } from '@nestjs/common';

/** The key of Nest's metadata for the decorated parameters of a method. */
const PARAMETERS = '__routeArguments__';

/** The names of the decorators in messages, by the function that reads the value. */
const decorators = new WeakMap<object, string>();

/** Creates a parameter decorator whose value comes from the session that `SessionGuard` loads. @param name in messages */
export function sessionParameter<Data, Value>(
  name: string,
  read: (data: Data, context: ExecutionContext) => Value,
): ReturnType<typeof createParamDecorator<Data, Value>> {
  decorators.set(read, name);
  return createParamDecorator(read);
}

/** Returns the name of a decorator of {@link sessionParameter} on a parameter of the method, if it has one. */
export function sessionParameterOf(type: object, method: string | symbol): string | undefined {
  const parameters = (Reflect.getMetadata(PARAMETERS, type, method) ?? {}) as Readonly<Record<string, Parameter>>;
  const names = Object.values(parameters).map(({ factory }) => (factory ? decorators.get(factory) : undefined));
  return names.find((name) => name !== undefined);
}

interface Parameter {
  /** The function of a custom decorator. */
  readonly factory?: object;
}
