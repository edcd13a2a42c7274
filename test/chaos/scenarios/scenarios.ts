import { clock } from './clock.js';
import { culprit } from './culprit.js';
import { frozen } from './frozen.js';
import { kills } from './kills.js';
import { network } from './network.js';
import { notifications } from './notifications.js';
import { rolling } from './rolling.js';
import { type Scenario } from './scenario.js';
import { serverCrash } from './server-crash.js';
import { stops } from './stops.js';
import { versions } from './versions.js';

export const SCENARIOS: readonly Scenario[] = [
  kills,
  frozen,
  serverCrash,
  notifications,
  network,
  clock,
  rolling,
  stops,
  versions,
  culprit,
];
