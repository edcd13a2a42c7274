import { type TurnSelection } from '../core/turn-selection.js';

/** Returns the SQL for a selection's condition on positions, with one parameter, and for its order. */
export function positionsOf({ isLatestFirst }: TurnSelection, parameter: string): { condition: string; order: string } {
  return isLatestFirst
    ? { condition: `position < ${parameter}`, order: 'ORDER BY position DESC' }
    : { condition: `position > ${parameter}`, order: 'ORDER BY position' };
}
