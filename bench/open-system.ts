import { openBullmq } from './bullmq-system.js';
import { openGroupmq } from './groupmq-system.js';
import { openOurs } from './our-system.js';
import { type SystemName, type SystemOptions, type TurnSystem } from './turn-system.js';

const OPENERS: Readonly<Record<SystemName, (options: SystemOptions) => Promise<TurnSystem>>> = {
  bullmq: openBullmq,
  groupmq: openGroupmq,
  ours: openOurs,
};

export function openSystem(name: SystemName, options: SystemOptions): Promise<TurnSystem> {
  return OPENERS[name](options);
}
