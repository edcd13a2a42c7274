export { type RecordsOf } from './records-of.js';
export { type SessionRecord } from './session-record.js';
export { type ErasedRecords, SessionRecords } from './session-records.service.js';
