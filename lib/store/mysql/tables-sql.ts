import {
  type CheckpointRow,
  type DocumentRow,
  type LaneRow,
  type LeaseRow,
  type MessageRow,
  type SessionRow,
  type SignalRow,
  type StepRow,
  type TombstoneRow,
  type TurnEventRow,
  type TurnRow,
} from '../core/rows.js';
import { TableSql } from './table-sql.js';

/** The statements of every table. */
export const SQL = {
  session: new TableSql<SessionRow>('session'),
  lane: new TableSql<LaneRow>('lane'),
  turn: new TableSql<TurnRow>('turn'),
  step: new TableSql<StepRow>('step'),
  signal: new TableSql<SignalRow>('signal'),
  turn_event: new TableSql<TurnEventRow>('turn_event'),
  checkpoint: new TableSql<CheckpointRow>('checkpoint'),
  message: new TableSql<MessageRow>('message'),
  document: new TableSql<DocumentRow>('document'),
  lease: new TableSql<LeaseRow>('lease'),
  tombstone: new TableSql<TombstoneRow>('tombstone'),
};
