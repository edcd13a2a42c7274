/** The messages about the file of the SQLite store. */
export const sqliteMessages = {
  notAFile: (received: unknown): string => {
    const advice = received
      ? 'For a store that lives in memory use memoryAdapter().'
      : 'Is its environment variable set?';
    return (
      'typeormAdapter: the SQLite database must be the path of a file. ' +
      `Received: ${JSON.stringify(received)}. ${advice}`
    );
  },

  missingFile: (file: string): string =>
    `typeormAdapter: dataSource.fileMustExist is true, so the file must exist. Received: ${file}. Create the ` +
    'file, or remove fileMustExist.',

  /** @param reason the message of the file system or of SQLite */
  notOpened: (file: string, reason: string): string =>
    `typeormAdapter: the SQLite database ${file} could not be opened: ${reason}. It must be a file, in a folder in ` +
    'which this process may create files.',

  migratedElsewhere: (file: string): string =>
    `Another process has been migrating ${file} for over a minute. Wait for it to end, or stop it.`,

  waitsForWorker: (file: string, seconds: number): string =>
    `Another worker runs turns on ${file}. Waiting up to ${seconds} s for it to stop.`,

  otherWorker: (file: string, seconds: number): string =>
    `Another worker still runs turns on ${file} after ${seconds} s, in another process or in another application of ` +
    'this one. A SQLite file has one worker process at a time. Stop the other worker, set a shorter ' +
    'turns.shutdownGraceMs, or use a store that processes can share.',
};
