import { type TurnSelection } from '../core/turn-selection.js';

/** The SQL of a selection's condition on positions, with one parameter, and of its order. */
export function positionsOf({ isLatestFirst }: TurnSelection, parameter: string): { condition: string; order: string } {
  return isLatestFirst
    ? { condition: `position < ${parameter}`, order: 'ORDER BY position DESC' }
    : { condition: `position > ${parameter}`, order: 'ORDER BY position' };
}
