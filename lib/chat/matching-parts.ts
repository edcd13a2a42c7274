import { isData, type PartFields } from './chunk-fields.js';

/**
 * Finds the parts of two versions of a message that correspond to each other: the same call, the data with the same id, or
 * the part of the same type and number. Data corresponds to data of any step, all other parts to parts of the same step.
 */
export class MatchingParts {
  /** The parts that share an identity, in order. */
  private readonly parts = new Map<string, PartFields[]>();
  private readonly places = new WeakMap<PartFields, { readonly identity: string; readonly number: number }>();

  /** Adds a part at the end of a step. */
  add(part: PartFields, step: number): void {
    const identity = identityOf(part, step);
    const same = this.parts.get(identity) ?? [];
    this.places.set(part, { identity, number: same.length });
    same.push(part);
    this.parts.set(identity, same);
  }

  replace(part: PartFields, by: PartFields): void {
    const place = this.places.get(part)!;
    this.places.set(by, place);
    this.parts.get(place.identity)![place.number] = by;
  }

  /** Removes parts, to the last one that was added. */
  remove(parts: readonly PartFields[]): void {
    for (const part of parts) this.parts.get(this.places.get(part)!.identity)!.pop();
  }

  /** Returns the data with the type and the id of the given data, if it has an id. */
  data(given: { readonly type: string; readonly id?: string }): PartFields | undefined {
    return given.id === undefined ? undefined : this.parts.get(identityOf(given, 0))?.[0];
  }

  /** Returns the part that corresponds to a part of another version. */
  counterpart(part: PartFields, other: MatchingParts): PartFields | undefined {
    const { identity, number } = other.places.get(part)!;
    return this.parts.get(identity)?.[number];
  }
}

function identityOf({ type, id, toolCallId }: Pick<PartFields, 'type' | 'id' | 'toolCallId'>, step: number): string {
  if (isData({ type })) return JSON.stringify([type, id]);
  return JSON.stringify(toolCallId === undefined ? [step, type] : [step, 'call', toolCallId]);
}
