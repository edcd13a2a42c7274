import { type CustomDecorator } from '@nestjs/common';
import { commonMessages } from './common.messages.js';
import { SessionsConfigurationError } from './sessions.error.js';

/**
 * The mark that a decorator sets on methods. It is kept by class and method name, because metadata of a function is lost when another
 * decorator wraps the method or a subclass overrides it (FIX-72). It is also set as metadata of the function, for Nest's `Reflector`
 * and for functions that are copied to another class.
 */
export class MethodMark<Value> {
  private readonly named = new WeakMap<object, Map<string | symbol, Value>>();

  /**
   * @param decorator its name in messages, such as `@Intent()`
   * @param key the key of the metadata
   */
  constructor(
    readonly decorator: string,
    readonly key: string,
  ) {}

  /**
   * Returns a decorator that sets the mark on a method, or as metadata on a class. The decorator throws for a static method.
   * @param check throws for an invalid value. `place` names the class or the method that is decorated
   */
  decorate(value: Value, check: (place: string) => void = () => undefined): CustomDecorator {
    const decorator = (target: object, name?: string | symbol, descriptor?: PropertyDescriptor): void => {
      check(placeOf(target, name));
      if (name === undefined) Reflect.defineMetadata(this.key, value, target);
      else this.set(target, name, descriptor, value);
    };
    return Object.assign(decorator, { KEY: this.key });
  }

  /** Returns the marks of the methods of a class, by name. A subclass inherits the marks of its base class. */
  of(prototype: object): ReadonlyMap<string | symbol, Value> {
    const marks = new Map<string | symbol, Value>();
    for (const owner of classesOf(prototype).reverse()) {
      for (const name of Reflect.ownKeys(owner)) {
        const method = name === 'constructor' ? undefined : methodAt(owner, name);
        if (method && this.isOn(method)) marks.set(name, Reflect.getMetadata(this.key, method) as Value);
      }
      for (const [name, value] of this.named.get(owner) ?? []) marks.set(name, value);
    }
    return marks;
  }

  /**
   * Sets the metadata on methods that replaced a marked one, so that `Reflector` finds it.
   * @throws SessionsConfigurationError if a marked method is not a method any more
   */
  restore(prototype: object): void {
    for (const [name, value] of this.of(prototype)) {
      const method = methodAt(prototype, name);
      if (!method) throw lostMark(prototype.constructor.name, name, this.decorator);
      if (!this.isOn(method)) Reflect.defineMetadata(this.key, value, method);
    }
  }

  /** Returns whether the function or class has the metadata. */
  isOn(target: object): boolean {
    return Reflect.hasMetadata(this.key, target);
  }

  private set(owner: object, name: string | symbol, descriptor: PropertyDescriptor | undefined, value: Value): void {
    if (typeof owner === 'function') {
      throw new SessionsConfigurationError(commonMessages.staticMethod(this.decorator, placeOf(owner, name)));
    }
    const marks = this.named.get(owner) ?? new Map<string | symbol, Value>();
    this.named.set(owner, marks.set(name, value));
    // A decorator may have replaced the method by an accessor.
    if (typeof descriptor?.value === 'function') Reflect.defineMetadata(this.key, value, descriptor.value as object);
  }
}

/** Returns the name of a decorated class or method, for example `ChatController.say`. */
export function placeOf(target: object, method?: string | symbol): string {
  const { name } = typeof target === 'function' ? target : target.constructor;
  return method === undefined ? name : `${name}.${String(method)}`;
}

/** Explains that the property with a mark cannot be called as a method. */
export function lostMark(type: string, name: string | symbol, decorator: string): SessionsConfigurationError {
  return new SessionsConfigurationError(commonMessages.notAMethod(`${type}.${String(name)}`, decorator));
}

/** Returns the names of all methods and accessors of a class and its base classes. */
export function methodNames(prototype: object): (string | symbol)[] {
  const names = new Set(classesOf(prototype).flatMap((owner) => Reflect.ownKeys(owner)));
  names.delete('constructor');
  return [...names];
}

/** Returns the method of a class or of its base classes, without calling an accessor. */
export function methodAt(prototype: object, method: string | symbol): object | undefined {
  const owner = classesOf(prototype).find((each) => Object.hasOwn(each, method));
  const value: unknown = owner && Object.getOwnPropertyDescriptor(owner, method)?.value;
  return typeof value === 'function' ? value : undefined;
}

/** Returns the prototypes of a class and its base classes, nearest first. */
function classesOf(prototype: object): object[] {
  const owners: object[] = [];
  let owner: object | null = prototype;
  while (owner && owner !== Object.prototype) {
    owners.push(owner);
    owner = Object.getPrototypeOf(owner) as object | null;
  }
  return owners;
}
