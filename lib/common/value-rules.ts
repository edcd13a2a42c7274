import { getMetadataStorage } from 'class-validator';

/** A rule of one property, for which its value is all that counts. */
interface ValueRule {
  readonly key: string;
  /** `null`: the property may be left out. */
  readonly allows: ((value: unknown) => boolean) | null;
}

/** Says of an instance whether it keeps all rules of its class. */
type Check = (instance: object) => boolean;

const ALLOW = 'whitelistValidation';

/** By the prototypes that they were written on. */
const rulesOf = new WeakMap<object, ValueRule[]>();
const checks = new WeakMap<object, Check | null>();

/** Tells of a rule that class-validator is told of as well. */
export function addValueRule(prototype: object, rule: ValueRule): void {
  rulesOf.set(prototype, [...(rulesOf.get(prototype) ?? []), rule]);
}

/**
 * Whether an instance is certainly right, found out in a hundredth of the time that class-validator takes: it looks up and sorts
 * all rules of a class for every object. False may also mean that its class has rules of another kind.
 */
export function isCertainlyValid(type: new () => object, instance: object): boolean {
  let check = checks.get(type);
  if (check === undefined) {
    check = checkOf(type);
    checks.set(type, check);
  }
  return check !== null && check(instance);
}

function checkOf(type: new () => object): Check | null {
  const known = getMetadataStorage().getTargetValidationMetadatas(type, '', false, false);
  const prototypes = ancestorsOf(type.prototype as object);
  const written = ({ constructor }: object): number =>
    known.filter((rule) => rule.target === constructor && rule.type !== ALLOW).length;
  // Some were written with class-validator itself, or again in a class that inherits them.
  if (prototypes.some((prototype) => written(prototype) !== (rulesOf.get(prototype) ?? []).length)) return null;
  const rules = prototypes.flatMap((prototype) => rulesOf.get(prototype) ?? []);
  const keys = new Set(known.map(({ propertyName }) => propertyName));
  const optional = new Set(rules.flatMap(({ key, allows }) => (allows ? [] : key)));
  return (instance) => {
    const values = instance as Record<string, unknown>;
    const keeps = ({ key, allows }: ValueRule): boolean =>
      !allows || (values[key] === undefined && optional.has(key)) || allows(values[key]);
    return Object.keys(values).every((key) => keys.has(key)) && rules.every(keeps);
  };
}

function ancestorsOf(prototype: object | null): object[] {
  return prototype ? [prototype, ...ancestorsOf(Object.getPrototypeOf(prototype) as object | null)] : [];
}
