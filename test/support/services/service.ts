/** A server that the tests need. */
export interface Service {
  readonly name: string;
  /** The environment variable with its address. If it is already set, that server is used and none is started. */
  readonly variable: string;
  /** @param folder an empty folder for the server */
  start(folder: string): Promise<RunningService>;
}

export interface RunningService {
  readonly url: string;
  readonly stop: () => Promise<void>;
}
