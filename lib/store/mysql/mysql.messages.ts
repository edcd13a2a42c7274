/** The cures for settings of the server that mysql-start.ts refuses. */
export const mysqlMessages = {
  connectionCharsetCure: (): string => 'It must be utf8mb4: check init_connect and the options of the connection.',

  columnCharsetCure: (): string => 'It must be utf8mb4: ALTER TABLE ... MODIFY the column, or run the migrations.',

  maxPacketCure: (needed: number): string =>
    `It must be ${needed} or more, twice the largest of turns.maxStepBytes, turns.maxReplyBytes and ` +
    'turns.maxInputBytes. Raise it on the server, 64 MB is plenty, or lower these options.',
};
